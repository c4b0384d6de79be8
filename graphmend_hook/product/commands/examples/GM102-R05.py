def f(x):
    if x.sum() > 0:
        y = x + 1
    return y

# becomes

def f(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    return y
