import numba

@numba.njit
def f(x):
    if x.sum() < 0:
        raise ValueError('negative')
    return x * 2

# becomes

def f(x):
    if x.sum() < 0:
        raise ValueError('negative')
    return x * 2
