def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x + 1
    return x

# becomes

def f(x):
    y = x
    with torch.no_grad():
        if x.sum() > 0:
            y = x + 1
    return y
