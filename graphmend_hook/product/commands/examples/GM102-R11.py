def f(x, **kept):
    kept.update(locals())
    if x.sum() > 0:
        x = x + 1
    return x * 2

# becomes

def f(x, **kept):
    kept.update(x=x)
    if x.sum() > 0:
        x = x + 1
    return x * 2
