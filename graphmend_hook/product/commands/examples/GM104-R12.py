import numba

@numba.njit
def f(x):
    count = int(x.argmax())
    return x[:count]

# becomes

def f(x):
    count = int(x.argmax())
    return x[:count]
