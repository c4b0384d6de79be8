def f(x):
    if x.sum() > 0:
        x = x + (1 if x.max() > 3 else 2)
    return x

# becomes

def f(x):
    if x.sum() > 0:
        if x.max() > 3:
            x = x + 1
        else:
            x = x + 2
    return x
