"""Functions whose inputs may share memory; the tests import this file as it is, and mended."""

from __future__ import annotations

import torch


def branch(x, alias):
    y = x + 1
    if x.sum() > 0:
        y = x
    alias.add_(1)
    return y * 2


def number(x, alias):
    count = x[0].int()
    alias.add_(1)
    return torch.ones(9)[: count.item()]


def write_through_data(tensor):
    tensor.data.add_(1)


def branch_behind_autograd(x, other):
    y = x + other
    if x.sum() > 0:
        y = y + 1
    z = y
    write_through_data(y)
    return z * 2


def branch_behind_writes(x, other):
    y = x + 1
    y.clamp_(min=0)
    y[:, :1].mul_(2)
    y.t()[:2].add_(1)
    if x.sum() > 0:
        y = other
    return y


def branch_behind_a_transposed_write(x, other):
    y = x + 1
    y.t().masked_fill_(y.t() > 1, 0.0)
    if x.sum() > 0:
        y = other
    return y
