def f(x):
    y = print('in f')
    return x + 1 if y is None else x

# becomes

def f(x):
    print('in f')
    return x + 1
