"""Tensors that are told to require a gradient: what becomes of them, and of what is computed of them."""

from __future__ import annotations

import logging

import torch
import torch.nn.functional as F
from programs import of, steps, trained

logger = logging.getLogger("requires_grad_cases")
ONES = ((of(1), trained(3)),)
HEADS = ((torch.rand(1, 2, 17, 24, generator=torch.Generator().manual_seed(0)), trained(24, times=0.1)),)
PARTS = ((torch.rand(6, 17, 24, generator=torch.Generator().manual_seed(0)), trained(24, times=0.1)),)
NOTED = []


@steps(ONES)
def told_setitem(x, w):
    h = torch.zeros_like(x).requires_grad_()
    z = torch.zeros(3)
    z[0] = h[0]
    return z, h * w


@steps(ONES)
def told_setitem_input(x, w):
    h = torch.zeros_like(x).requires_grad_()
    x[0] = (h + 1)[0]
    return x * w


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2


class Draws(Doubled):
    @staticmethod
    def backward(ctx, g):
        torch.rand(1)
        NOTED.append(1)
        return g


class Logs(Doubled):
    @staticmethod
    def backward(ctx, g):
        logger.warning("backward")
        return g


class Never(Doubled):
    @staticmethod
    def backward(ctx, g):
        raise ValueError("never")


def told_and_given_to(function, x, w):
    h = x * 1
    h.requires_grad = True
    return function.apply(h) * w


@steps(ONES)
def told_backward(x, w):
    return told_and_given_to(Draws, x, w)


@steps(ONES)
def told_backward_logs(x, w):
    return told_and_given_to(Logs, x, w)


@steps(ONES)
def told_backward_raises(x, w):
    return told_and_given_to(Never, x, w)


@steps(HEADS)
def told_sdpa(x, w):
    q = x * w
    m = torch.full((1, 1, 17, 17), 0.3).requires_grad_()
    return F.scaled_dot_product_attention(q, q, q, attn_mask=m)


@steps(PARTS)
def told_matmul(x, w):
    h = x[0, :, 1] + 0
    h.requires_grad = True
    return torch.matmul((x * w).transpose(1, 2), h)


@steps(ONES)
def told_bce(x, w):
    h = torch.ones_like(x).requires_grad_()
    return F.binary_cross_entropy(w.sigmoid(), x.sigmoid(), weight=h)


@steps(ONES)
def told_igamma(x, w):
    h = torch.ones_like(x).requires_grad_()
    return torch.igamma(h, w)


@steps(ONES)
def told_saved(x, w):
    h = torch.ones_like(x).requires_grad_()
    v = w * 1
    y = h * v
    with torch.no_grad():
        v.add_(1)
    return y


@steps(ONES)
def told_flag(x, w, flag=1):
    h = torch.zeros(3, requires_grad=flag)
    return h * w


@steps(ONES)
def told_dropout(x, w):
    with torch.no_grad():
        h = torch.ones_like(x).requires_grad_()
        b = F.dropout(h, 0.5, training=False)
    return b, w * 2


@steps(ONES)
def told_without_a_graph(x, w):
    x.requires_grad_()


@steps(ONES)
def told_before_a_break(x, w):
    x.requires_grad_()
    torch._dynamo.graph_break()
    return x * w


@steps(ONES)
def told_and_given(x, w):
    x.requires_grad = True
    return x
