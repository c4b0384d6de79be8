def f(x, table):
    try:
        y = x * table['scale']
    except KeyError:
        if x.sum() < 0:
            raise
        else:
            y = x + 1
    return y

# becomes

def f(x, table):
    if 'scale' in table:
        y = x * table['scale']
    elif x.sum() < 0:
        raise KeyError('scale')
    else:
        y = x + 1
    return y
