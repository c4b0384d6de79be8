def f(x):
    if x.sum() > 0:
        x = x + 1
    yield x * 2

# becomes

def part(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2

def f(x):
    yield part(x)
