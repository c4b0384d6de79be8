def f(x):
    if x.sum() > 0:
        factor = 1.0
    else:
        factor = 2
    return x * factor

# becomes

def f(x):
    if x.sum() > 0:
        y = x * 1.0
    else:
        y = x * 2
    return y
