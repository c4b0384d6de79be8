def f(x, weight):
    hidden = x * 2
    hidden.requires_grad_()
    yield hidden @ weight

# becomes

def part(x, weight):
    hidden = x * 2
    hidden.requires_grad_()
    return hidden @ weight

def f(x, weight):
    yield part(x, weight)
