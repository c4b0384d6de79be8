def f(x):
    if x.sum() > 0:
        x = x + x.tolist()[0]
    return x

# becomes

def f(x):
    if x.sum() > 0:
        x = x + x[0]
    return x
