def f(x):
    if x.sum() < 0:
        y = x.long()
    else:
        y = x + 1
    return y * 2.0

# becomes

def f(x):
    if x.sum() < 0:
        y = x.trunc()
    else:
        y = x + 1
    return y * 2.0
