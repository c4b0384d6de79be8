def f(x):
    if x.sum() < 0:
        raise ValueError('negative')
    yield x * 2

# becomes

def part(x):
    if x.sum() < 0:
        raise ValueError('negative')
    return x * 2

def f(x):
    yield part(x)
