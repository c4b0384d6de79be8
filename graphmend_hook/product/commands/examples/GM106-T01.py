def f(x, weight):
    y = x.to(torch.complex64)
    y.requires_grad = True
    return (y @ weight.to(y.dtype)).real

# becomes

def f(x, weight):
    y = x * 1
    y.requires_grad = True
    return y @ weight
