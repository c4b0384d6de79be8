import numba

@numba.njit
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2

# becomes

def f(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2
