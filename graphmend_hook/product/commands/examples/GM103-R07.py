def f(x):
    if x.min() < -9 or x.max() > 9 or x.mean() < 0 or x.sum() > 20 or x.prod() > 30 or x[0].sum() > 5:
        raise ValueError('out of range')
    return x + 1

# becomes

def f(x):
    is_far = (x.abs().max() > 9) | (x.mean() < 0) | (x.sum() > 20) | (x.prod() > 30) | (x[0].sum() > 5)
    if is_far:
        raise ValueError('out of range')
    return x + 1
