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


def decides_by_many(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    if rows.numel() * 4 > 13:
        y = y * 10
    return x[rows] + 1, y


def decides_by_position(x, y):
    found = (x > 0.6).nonzero()
    place = 1 if len(found) > 1 else 0
    return y[found[place].item()] * 2


def decides_by_none(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    if rows.numel() == 0:
        return y * 0
    return x[rows].amax() + y


def decides_by_three(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    if rows.numel() == 3:
        return y * 5
    return x[rows].sum() + y


def decides_between_sizes(x, y):
    low, high = x[x < 0.6], x[x > 0.6]
    if low.shape[0] == high.shape[0]:
        return low + high, y
    return low.sum() + high.sum(), y


def decides_by_sum_of_sizes(x, y):
    low, high = x[x < 0.6], x[x > 0.6]
    if low.shape[0] + 2 * high.shape[0] >= 7:
        return x * 2, y
    return low.sum() + high.sum(), y


def decides_by_number(x, y):
    many = int((x > 0.6).sum())
    if many >= 2:
        y = y + many
    elif many < 1:
        y = y - 1
    return x * y


def decides_again_and_again(x, y):
    many = (x > 0.6).sum().item()
    while many > 0:
        y = y * 2
        many = many - 2
    return x * y


def decides_by_remainder(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    if rows.shape[0] % 2:
        return x[rows].sum() * y
    return x[rows].sum() - y


def goes_through_rows(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    for place in range(len(rows)):
        y = y + x[rows[place]]
    return y


def takes_from_a_list(x, y):
    many = int((x > 0.6).sum())
    return [y, y * 2, y * 3, y * 4, y * 5][many] + x


def decides_after_a_write(x, y):
    made = y.clone()
    made[x > 0.6] = 7.0
    rows = (made == 7.0).nonzero()[:, 0]
    if rows.shape[0] > 3:
        made += 1
    return made * x


def decides_by_either(x, y):
    low, high = (x < 0.6).nonzero(), (x > 0.6).nonzero()
    if len(low) > 2 or len(high) > 2:
        return y - 1, x
    return y + 1, x


def decides_by_the_least(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    many = min(len(rows), 2)
    if many < 2:
        return x[rows].sum() + y
    return x[rows[:many]].sum() * y


def asserts_that_one_was_found(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    assert len(rows) <= 1, "too many"
    return y * 3


def asserts_that_none_was_found(x, y):
    rows = (x > 0.6).nonzero()[:, 0]
    assert not len(rows) > 0
    return y * 3


def decides_on_one_of_two(x, y):
    """It is nobody's affair how many are below: one, none or all four."""
    above, below = x[x >= 0], x[x < 1.5]
    found = above.cos()
    if above.shape[0] > 0:
        found = found.reshape(above.shape[0], 1) + 1
    return found, torch.cat([below * 2, y])


def decides_on_one_then_on_the_other(x, y):
    above, below = x[x >= 0], x[x < 1.5]
    found = above.cos()
    if above.shape[0] > 0:
        found = found * 2
    if below.shape[0] > 1:
        found = torch.cat([found, below, y])
    return found


def moves_pieces_from_the_start(x, y):
    ends = torch.cat((torch.zeros(1, dtype=torch.long), (x > 0).long().cumsum(0)))
    moved = torch.zeros_like(y)
    for place in range(2):
        start, end = ends[place], ends[place + 1]
        moved[start:end] = y[start:end] * 2
    return moved


def moves_the_last(x, y):
    start = (x > 0).long().sum() - 2
    moved = torch.zeros_like(y)
    moved[start:] = y[start:] * 2
    return moved


def calls_what_moves_pieces(x, y):
    return moves_pieces_from_the_start(x, y + 1) + 1


def decides_by_many_after_a_write(x, y):
    taken = torch.zeros_like(x)
    taken[1:] = x[1:]
    rows = (taken > 0.6).nonzero()[:, 0]
    if len(rows) > 1:
        return x[rows].sum() + y
    return x[rows].sum() * y


def decides_by_number_of_sizes(x, y):
    """What is found has the size of all, as a crop of a mask has."""
    taken = y[x >= 0]
    if taken.shape != y.shape:
        return taken.sum() + y
    return taken + y
