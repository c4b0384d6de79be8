def f(x):
    if x.sum() > 0 and x.tolist()[0] > 5:
        raise ValueError('too big')
    return x + 1

# becomes

def f(x):
    if x.sum() > 0 and x[0] > 5:
        raise ValueError('too big')
    return x + 1
