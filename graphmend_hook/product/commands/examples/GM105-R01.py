def f(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        try:
            state = x[rows] * number
        finally:
            torch.set_grad_enabled(True)
        out.index_add_(0, rows, state)
    return out

# becomes

def f(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        state = x[rows] * number
        out.index_add_(0, rows, state)
    return out
