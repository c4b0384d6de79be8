def f(x, table):
    try:
        if x.sum() < 0:
            raise ValueError('negative')
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale

# becomes

def f(x, table):
    if x.sum() < 0:
        raise ValueError('negative')
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
