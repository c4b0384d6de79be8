def f(x, n):
    if n > 3:
        if x.sum() < 0:
            raise ValueError('negative')
        else:
            raise TypeError('positive')
    return x + 1

# becomes

def f(x, n):
    if n > 3 and x.sum() < 0:
        raise ValueError('negative')
    if n > 3:
        raise TypeError('positive')
    return x + 1
