def add_one(y):
    y.add_(1)

def f(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    add_one(y)
    return y

# becomes

def f(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    return y + 1
