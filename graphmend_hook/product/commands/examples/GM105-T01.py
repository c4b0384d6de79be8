def f(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] - x[rows].max())
    return out

# becomes

def f(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    highest = torch.stack([torch.where((chosen == each)[:, None], x, -torch.inf).max() for each in range(4)])
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] - highest[number])
    return out
