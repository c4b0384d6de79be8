def f(x):
    return (x if x.sum() > 0 else -x) + (x if x.max() > 3 else x * 2)

# becomes

def f(x):
    y = x if x.sum() > 0 else -x
    z = x if x.max() > 3 else x * 2
    return y + z
