def f(x):
    n = 2
    while x.sum() > 1:
        x = x / n
        n += 1
    return x

# becomes

def f(x):
    n = torch.full((), 2)
    while x.sum() > 1:
        x = x / n
        n = n + 1
    return x
