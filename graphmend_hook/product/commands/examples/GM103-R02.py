def f(x):
    if x.sum() > 0 and (most := x.max()) > 5:
        raise ValueError(f'too big: {most}')
    return x + 1

# becomes

def f(x):
    most = x.max()
    if x.sum() > 0 and most > 5:
        raise ValueError(f'too big: {most}')
    return x + 1
