def f(x):
    y = x * 2
    y.requires_grad_()
    return y * 2

# becomes

def f(x):
    y = x * 2
    return y * 2
