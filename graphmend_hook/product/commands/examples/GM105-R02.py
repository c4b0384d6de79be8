def f(x):
    chosen, out, state = x.argmax(1), torch.zeros_like(x), x
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        state = x[rows] * number
        out.index_add_(0, rows, state)

    def scaled(part):
        return part * state.shape[1]

    return scaled(out)

# becomes

def f(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        state = x[rows] * number
        out.index_add_(0, rows, state)

    def scaled(part):
        return part * x.shape[1]

    return scaled(out)
