"""Programs with sizes that the data decides, and parts without; each takes five rows of two numbers, and seven of three."""

import torch


def of_a_list(x, y):
    low, high = y.split((x > 0).sum(0).tolist())
    return torch.cat([high * 2, low])


def of_rows(x, y):
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    return (x[rows] + y[: rows.shape[0], :2]).relu()


def of_rows_that_are_summed_up(x, y):
    """What is made of them has a size that is known, and reads what has none, as the gradient of a weight does."""
    rows = x[(x[:, 0] > 0).nonzero()[:, 0]]
    summed = rows.t() @ rows
    return torch.relu(summed) @ torch.relu(summed)


def of_experts(x, y):
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    made = (x[rows] @ y[:2].relu()).sin()
    return torch.zeros(5, 3, device=x.device).index_add(0, rows, made).cos()


def of_rows_between(x, y):
    before = (torch.relu(y @ y.t()) @ y).softmax(0) @ y.t()
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    added = torch.zeros(5, 2, device=x.device).index_add(0, rows, x[rows] * 2)
    return (added @ added.t()).softmax(0) @ x, before


def of_no_such_size(x, y):
    return (x @ y[:2]).relu() @ y.t()
