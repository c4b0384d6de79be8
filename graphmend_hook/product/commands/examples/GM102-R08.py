def f(x, out):
    if x.sum() > 0:
        out['y'] = x + 1
    else:
        out['y'] = x - 1
    return out

# becomes

def f(x, out):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    out['y'] = y
    return out
