def f(x, n=1):
    if n > 0:
        most = x.abs() * 2
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1

# becomes

def f(x, n=1):
    most = x
    if n > 0:
        most = x.abs() * 2
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1
