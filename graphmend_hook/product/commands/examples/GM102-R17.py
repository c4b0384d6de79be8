def f(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    y.add_(2)
    return y

# becomes

def f(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    y = y + 2
    return y
