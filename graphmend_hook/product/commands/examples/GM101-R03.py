def f(x, table):
    try:
        print('in f')
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale

# becomes

def f(x, table):
    print('in f')
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
