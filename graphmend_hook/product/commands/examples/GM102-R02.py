def scaled(x, factor):
    return x * factor

def f(x):
    if x.sum() > 0:
        x = scaled(x, 3)
    return x

# becomes

def scaled(x, factor):
    return x * factor

def f(x):
    y = scaled(x, 3)
    if x.sum() > 0:
        x = y
    return x
