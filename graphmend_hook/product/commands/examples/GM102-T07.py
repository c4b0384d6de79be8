def g(x):
    if x.sum() > 0:
        x = x * 2
    return x.sum()

def f(x):
    return torch.func.grad(g)(x)

# becomes

def g(x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return x.sum()

def f(x):
    return torch.func.grad(g)(x)
