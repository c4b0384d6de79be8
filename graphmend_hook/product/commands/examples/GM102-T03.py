def f(x):
    if x.sum() > 0:
        over = [0]
    else:
        over = []
    return x.flip(over)

# becomes

def f(x):
    if x.sum() > 0:
        y = x.flip([0])
    else:
        y = x.clone()
    return y
