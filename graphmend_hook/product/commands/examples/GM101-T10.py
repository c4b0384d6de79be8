def g(x):
    print('in g')
    return x + 1

def f(x, table):
    try:
        return g(x) * table['scale']
    except KeyError:
        return x

# becomes

def g(x):
    print('in g')
    return x + 1

def f(x, table):
    y = g(x)
    try:
        return y * table['scale']
    except KeyError:
        return x
