import numba

@numba.njit
def f(x, weight):
    hidden = x * 2
    hidden.requires_grad_()
    return hidden @ weight

# becomes

def f(x, weight):
    hidden = x * 2
    hidden.requires_grad_()
    return hidden @ weight
