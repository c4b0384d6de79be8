def f(x):
    if x.sum() > 0:
        x = x + (most := x.max()) * 2
    return x

# becomes

def f(x):
    most = x.max()
    if x.sum() > 0:
        x = x + most * 2
    return x
