def f(x, y):
    z = x
    if x.sum() > 0:
        z = x + 1 if y is x else x * 2
    return z

# becomes

def f(x, y):
    z = x
    same = y is x
    if x.sum() > 0:
        z = x + 1 if same else x * 2
    return z
