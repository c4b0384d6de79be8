def f(x):
    if x.sum() > 0:
        y = x + 1
        del x
        x = y
    return x

# becomes

def f(x):
    if x.sum() > 0:
        y = x + 1
        x = y
    return x
