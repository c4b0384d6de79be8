"""Elements moved under a mask; the tests import this file as it is, and mended."""

from __future__ import annotations

import torch


def moved(x, y, mask: torch.Tensor):
    x = x * 1
    x[mask] = y[mask]
    return x * 2


def complement(x, y, mask: torch.Tensor):
    x = x * 1
    x[~mask] = y[~mask]
    return x


def compared(x, y, bound):
    x = x * 1
    x[bound > 0] = y[bound > 0]
    return x


def added(x, y, mask: torch.Tensor):
    x = x * 1
    x[mask] += y[mask]
    return x


def subtracted(x, y, mask: torch.Tensor):
    x = x * 1
    x[mask] -= y[mask]
    return x


def its_own(x, y, mask: torch.Tensor):
    """The source is a view of what is written."""
    x = x * 1
    turned = x.flip(0)[:]
    same = x[:]
    same[mask] = turned[mask]
    x[mask] += same[mask]
    return x


def handed_over(x, y, mask: torch.Tensor):
    """What is written belongs to the caller."""
    x[mask] = y[mask]
    return x.sum()


def chosen_by_numbers(x, y, places):
    """An index is no mask."""
    x = x * 1
    x[places] = y[places]
    return x


def repeated(x, y, mask: torch.Tensor):
    """Elements of what is written share memory: deprecated, but eager does it."""
    x = x[:1].expand(x.shape)
    x[mask] = y[mask]
    return x
