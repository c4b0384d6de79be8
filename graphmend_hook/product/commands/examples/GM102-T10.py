def f(x):
    mask = x > 2
    if mask.any():
        x[mask] = 0.0
    return x * 3

# becomes

def f(x):
    mask = x > 2
    return torch.where(mask, 0.0, x) * 3
