"""Tests that a tensor's truth alone does not decide: `and`, `or`, `not`, chains, and tensors that have no truth."""

from __future__ import annotations

import torch
from programs import of, steps

ONES, SIGNS = ((of(1),),), ((of(1),), (of(-1),))
ROWS = ((torch.ones(3, 3),),)
COUNTED = ((torch.tensor([1.0, 0, 0]),), (torch.tensor([1.0, 2, 0]),))
NOTED = []


@steps(ONES)
def truth_of_or(x):
    if (x > 0) or len(x) > 0:
        x = x + 1
    return x


@steps(ONES)
def truth_of_and(x, debug=False):
    if torch.isnan(x) and debug:
        raise ValueError("nan")
    return x * 2


@steps(ONES)
def truth_of_assert(x):
    assert (x > 0) or len(x) > 0
    return x


@steps(SIGNS)
def truth_of_chain(x):
    assert 0 < x[0] < 5, "chain"
    return x + 1


@steps(SIGNS)
def truth_of_chain_or(x):
    assert x.sum() > 9 or 0 < x[0] <= x[1], "chain"
    return x + 1


@steps(ONES)
def truth_of_expression(x):
    return x * 2 if ((x > 0) or True) else x  # noqa: SIM222


@steps(ONES)
def truth_of_meta(x):
    if torch.zeros(1, device="meta") > 0 or True:
        x = x + 1
    return x


@steps(ONES)
def truth_of_empty(x):
    if torch.zeros(0) or True:
        x = x + 1
    return x


@steps(ROWS)
def truth_of_vmap(x):
    def g(a):
        if a.sum() > 3 or len(a) > 0:
            a = a + 1
        return a

    return torch.vmap(g)(x)


@steps(COUNTED)
def truth_of_counted(x):
    if torch.nonzero(x) or len(x) > 0:
        x = x * 2
    return x


@steps(ONES)
def truth_of_not(x):
    if not (x > 0):
        x = x + 1
    return x


class Counts:
    """An object whose truth is counted."""

    def __init__(self, truth):
        self.truth = truth

    def __bool__(self):
        NOTED.append(1)
        return self.truth


yes, no = Counts(True), Counts(False)


@steps(ONES)
def truth_of_what_counts(x):
    if (x[0] > 0 and yes) or x is None:
        x = x * 3
    y = x * (2 if (no or x[0] > 0) and yes else 3)
    assert (no and x[1] > 0) or yes
    return y if not ((x[0] < 0 or no) and x is None) else x
