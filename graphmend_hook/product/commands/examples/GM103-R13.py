def f(x, table):
    try:
        scale = table['scale']
    except KeyError:
        if x.sum() < 0:
            raise
        scale = 1
    return x * scale

# becomes

def f(x, table):
    known = 'scale' in table
    if not known and x.sum() < 0:
        raise KeyError('scale')
    scale = table['scale'] if known else 1
    return x * scale
