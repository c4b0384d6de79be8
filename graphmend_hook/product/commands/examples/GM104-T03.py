def f(x, n):
    torch.add(n, 1, out=n)
    for _ in range(n.max().item()):
        x = x * 2
    return x

# becomes

def f(x, n):
    torch.add(n, 1, out=n)
    return x * 2 ** n.max()
