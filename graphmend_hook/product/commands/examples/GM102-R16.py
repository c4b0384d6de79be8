def f(x, table):
    try:
        if x.sum() > 0:
            print('positive')
            x = x + 1
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale

# becomes

def f(x, table):
    if x.sum() > 0:
        print('positive')
        x = x + 1
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
