def f(x, **kept):
    kept.update(locals())
    if x.sum() < 0:
        raise ValueError('negative')
    return x * 2

# becomes

def f(x, **kept):
    kept.update(x=x)
    if x.sum() < 0:
        raise ValueError('negative')
    return x * 2
