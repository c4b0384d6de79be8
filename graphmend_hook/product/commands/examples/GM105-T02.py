def f(x, weights):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * weights[number])
    return out * 2 if out.requires_grad else out

# becomes

def f(x, weights):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * weights[number])
    return out * 2
