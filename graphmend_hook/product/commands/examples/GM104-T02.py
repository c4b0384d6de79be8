def f(x, n):
    for _ in range(n.max().item()):
        x = x * 2
    return x

# is mended with `--values n`
