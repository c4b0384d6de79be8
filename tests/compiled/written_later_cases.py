"""What a gradient needs is written to later in the program."""

from __future__ import annotations

import logging

import torch
from programs import checkpointed, of, steps, trained
from torch import nn

logger = logging.getLogger("written_later_cases")
TWO = ((of(1), trained(3)), (of(2), trained(3)))
SIGNS = ((of(1), trained(3)), (of(-1), trained(3)))
BELOW = ((of(1), trained(50, times=-0.1)),)


@steps(SIGNS)
def kept_operand_is_written_to(x, y):
    p = x.detach() * 2
    z = y
    if x[0] > 0:
        z = y * p
    p.add_(1)
    return z


def _product(y, p):
    return torch.mul(y, p)


@steps(SIGNS)
def kept_by_a_function_is_written_to(x, y):
    p = x.detach() * 2
    z = y
    if x[0] > 0:
        z = _product(y, p)
    p.add_(1)
    return z


@steps(BELOW)
def twice_in_an_operation(x, y):
    """The gradient of `y` is a sum of three, which the order decides."""
    z = y
    if x[0] > 0:
        z = y.atan2(y)
    return y, z


@steps(TWO)
def written_and_given(x, y):
    h = x * 2
    h.requires_grad = True
    if x.sum() > 100:
        return x, y
    x.mul_(2)
    return x, y * h


@steps(TWO)
def written_and_told(x, y):
    h = x * 2
    h.requires_grad = True
    x.mul_(2)
    return y * h


@steps(TWO)
def written_behind_a_branch(x, y):
    h = x * 2
    if x.sum() > 100:
        h = h + 1
    x.mul_(2)
    return y * h


@steps(TWO)
def written_as_a_view(x, y):
    h = x * 2
    if x.sum() > 100:
        print("a")
    x.view(3).mul_(2)
    return y * h


@steps(TWO)
def written_behind_a_record(x, y):
    h = x * 2
    logger.warning("a %s", x.shape)
    x.view(3).mul_(2)
    return y * h


@steps(TWO)
def written_twice(x, y):
    h = x[1:] * 2
    g = x.exp()
    logger.warning("a %s", x.shape)
    x.mul_(2)
    k = x.sin()
    x.add_(1)
    return y[1:] * h + (y * g)[:2] + (y * k).sum()


class Counted(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("n", torch.ones(3))

    def forward(s, x, y):
        h = s.n * 2
        logger.warning("a")
        s.n.add_(1)
        return y * h


class Mixed(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("n", torch.rand(3, 3))

    def forward(s, x, y):
        a = s.n.t()[:2].reshape(-1)[:3]
        b = (a * 2).relu()
        logger.warning("a")
        s.n.copy_(s.n * 0.5 + 1)
        c = s.n.sum(0)
        s.n.mul_(2)
        return (y * b).sin() * c


@steps(TWO)
def written_under_a_checkpoint(x, y):
    h = checkpointed(torch.cos, x)
    logger.warning("a")
    x.mul_(2)
    return y * h


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        h = x.cos()
        ctx.save_for_backward(h)
        return y * h

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.saved_tensors[0]


@steps(TWO)
def written_under_a_function(x, y):
    h = Cosine.apply(x + 1, y)
    logger.warning("a")
    x.mul_(2)
    return h
