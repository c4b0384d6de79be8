def f(x):
    for _ in range(x.exp().sum().int().item()):
        x = x + 1
    return x

# becomes

def f(x):
    return x + x.exp().sum().int()
