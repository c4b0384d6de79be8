def f(x, n):
    return (x + 1)[: n.max().item()].expand(3, 4) * 2

# becomes

def f(x, n):
    places = torch.arange(3).clamp(max=n.max() - 1)
    return (x + 1)[places] * 2
