import numba

@numba.njit
def f(x):
    print('in f')
    return x + 1

# becomes

def f(x):
    print('in f')
    return x + 1
