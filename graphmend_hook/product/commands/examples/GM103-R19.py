def f(x):
    checked = (x.sum() > 0, 'negative')
    torch._assert(*checked)
    return x + 1

# becomes

def f(x):
    torch._assert(x.sum() > 0, 'negative')
    return x + 1
