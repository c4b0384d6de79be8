def f(x):
    if x > 0:
        x = x + 1
    return x

# becomes

def f(x):
    if (x > 0).any():
        x = x + 1
    return x
