"""What a trace takes for granted of a size that the data decides: each case is given 4 numbers, of which some are taken."""

import torch


def divides_by_the_size(x, y):
    taken = x[x > 0.6]
    return (taken + y).sum() / taken.shape[0]


def fills_with_the_size(x, y):
    taken = x[x > 0.6]
    total = (taken * y).sum()
    return torch.full((2,), taken.numel()) + total


def asks_for_the_size(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    found = x[rows] + y
    if rows.shape[0] == 4:
        found = found * 10
    return found


def gives_the_size(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    return torch.where(rows > 0, y, 0.0) * x, rows.size(0)


def stacks(x, y):
    taken = x[x > 0.6]
    return torch.stack([taken + y, y]).mean(0) * taken.shape[0], taken[:, None] + y[None]


def squeezes(x, y):
    taken = x[x > 0.6].squeeze()
    return taken + y


def two_sizes(x, y):
    low, high = x[x > 0.6], x[x < 0.6]
    return (low + high) * low.shape[0]


def of_rows(x, y):
    rows = x[:, None].expand(4, 3)[x > 0.6]
    return (rows + y[:, None]) * rows.shape[0]


def moves_pieces(x, y):
    """Where a piece begins in memory is never below zero."""
    ends = torch.cat((torch.zeros(1, dtype=torch.int64), torch.cumsum((x > 0.6).long(), 0)))
    rows, made = x[:, None] * y, torch.zeros(4, 4)
    for place in range(4):
        start, end = ends[place], ends[place + 1]
        made[start:end] = torch.matmul(rows[start:end], torch.eye(4) * y[place])
    return made


def of_a_number(x, y):
    count = int((x > 0.6).sum())
    return (torch.arange(count) + y) * count * x.sum()


def of_a_number_that_is_written_to(x, y):
    first, second = (x > 0.6).sum(), (x <= 0.6).sum()
    counts = [first.item()]
    first.add_(3)
    counts.append(second.item())
    low, high = x.split(counts)
    return torch.cat([high * 2, low + 1]) * first + y
