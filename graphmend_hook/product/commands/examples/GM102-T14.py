def f(x):
    table = torch.ones(3000, 3000)
    if x.sum() > 0:
        x = (x.repeat(1000) @ table)[:3]
    return x

# becomes

def f(x):
    table = torch.ones(3000, 3000)
    y = (x.repeat(1000) @ table)[:3]
    if x.sum() > 0:
        x = y
    return x
