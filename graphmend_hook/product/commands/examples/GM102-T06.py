def f(x):
    if x.sum() > 0 and x.log().sum() > 0:
        x = x + 1
    return x

# becomes

def f(x):
    is_big = x.log().sum() > 0
    if x.sum() > 0 and is_big:
        x = x + 1
    return x
