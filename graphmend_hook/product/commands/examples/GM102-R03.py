def f(x, n=1):
    if n > 0:
        y = x * 2
    if x.sum() > 0:
        x = x + y
    return x

# becomes

def f(x, n=1):
    y = x
    if n > 0:
        y = x * 2
    if x.sum() > 0:
        x = x + y
    return x
