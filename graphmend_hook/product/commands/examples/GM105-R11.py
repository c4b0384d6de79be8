def f(x, chosen, out, **kept):
    kept.update(locals())
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * number)
    return out

# becomes

def f(x, chosen, out, **kept):
    kept.update(x=x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * number)
    return out
