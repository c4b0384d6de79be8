def f(x, extra=None):
    if x.sum() < 0:
        x = x + extra.shape[0]
    return x

# becomes

def f(x, extra=None):
    size = 0 if extra is None else extra.shape[0]
    if x.sum() < 0:
        x = x + size
    return x
