def f(x):
    y = x.exp()
    if x.sum() > 0:
        y.mul_(2)
    return y

# becomes

def f(x):
    y = x.exp()
    if x.sum() > 0:
        y = y * 2
    return y
