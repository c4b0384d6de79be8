# With `--values n`:

def f(x, n):
    for _ in range(n.max().item()):
        x = x * 2
    return x

# becomes

def f(x, n):
    return x * 2 ** n.max()
