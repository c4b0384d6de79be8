def limit(x):
    return x.abs() * 2

def f(x):
    if x.sum() > 0 and (x > limit(x)).any():
        raise ValueError('too big')
    return x + 1

# becomes

def limit(x):
    return x.abs() * 2

def f(x):
    most = limit(x)
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1
