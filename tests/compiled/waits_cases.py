"""Programs that read a device: each takes five rows of two numbers, and seven rows of three."""

import torch
from torch import nn


def splits_by_a_list(x, y):
    low, high = y.split((x > 0).sum(0).tolist())
    return torch.cat([high * 2, low])


def splits_by_a_list_twice(x, y):
    counts = (x > 0).sum(0).tolist()
    parts = [part + 1 for part in y.split(counts)]
    return torch.cat(parts).split(counts), y[: counts[0]].sum()


def makes_as_many(x, y):
    count = (x > 0).sum().item()
    return torch.arange(count, device=x.device) + 1


def takes_several_numbers(x, y):
    first, second = int((x > 0).sum()), int((x <= 0).sum())
    return torch.ones(first, second, device=x.device) @ torch.ones(second, 3, device=x.device)


def reads_what_is_written_to(x, y):
    count = (x > 0).sum()
    number = count.item()
    count.add_(1)
    return y[:number] * count


def narrows(x, y):
    return y.narrow(0, 0, (x > 0).sum()) * 2


def slices(x, y):
    end = (x > 0).sum()
    return y[end - 2 : end] * 2


def takes_branches(x, y):
    if (x > 3).any():
        y = y + 1
    if x.sum() > 0 and not y.isnan().any():
        y = y * 2
    return y


def finds(x, y):
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    return x[rows] + y[: rows.shape[0], :2]


def selects(x, y):
    mask = x[:, 0] > 0
    return x[mask].sum() + (x[mask] * 2).sum()


def guards(x, y):
    if (x < -50).any():
        raise ValueError("low")
    if y.isnan().any():
        raise ValueError("no number")
    assert (y < 100).all(), "high"
    return y * 2


def takes_rows(x, y):
    return y[(x > 0).sum() - 4] + y[(x < 0).sum()]


def knows_its_classes(x, y):
    return nn.functional.one_hot((x > 0).long().sum(1))


def routes(x, y):
    experts = (x > 0).long().sum(1)
    order = experts.argsort()
    counts = nn.functional.one_hot(experts, 3).sum(0).tolist()
    made = [part * (place + 1) for place, part in enumerate(x[order].split(counts))]
    return torch.zeros_like(x).index_add(0, order, torch.cat(made))


def loops_over_experts(x, y):
    out, chosen = torch.zeros_like(x), (x > 0).long().sum(1)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * number)
    return out
