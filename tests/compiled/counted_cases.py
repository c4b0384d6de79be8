"""Operations that give as many elements as the data says, as libraries call them: see the docstrings."""

from __future__ import annotations

import torch


def counts(x, classes):
    """kornia."""
    return torch.bincount(x, minlength=classes * classes).view(classes, classes) * 2


def counts_weights(x, weights):
    return torch.bincount(x, weights).sum()


def counts_as_many_as_there_are(x):
    """torchmetrics, kendall_rank_corrcoef: the least length is a number that the data decided."""
    counts = torch.bincount(x, minlength=len(torch.unique(x)))
    counts = counts[counts > 1]
    return (counts * (counts - 1) // 2).sum()


def selects_by_an_operator(x):
    """torchvision.ops.nms."""
    return x[torch.ops.graphmend_tests.above(x[:, 0], 0.0)] * 2


def calls_an_operator_of_a_known_shape(x):
    return torch.ops.graphmend_tests.doubled(x) + 1


def knows_the_labels(target):
    """torchmetrics."""
    labels = torch.unique(target, dim=None)
    if torch.any((labels != 0) & (labels != 1)):
        raise RuntimeError(f"expected 0 and 1, got {labels}")
    return target * 2


def ranks(x):
    """torchmetrics: the same rank for what is equal."""
    order = x.argsort()
    rank = torch.empty_like(x, dtype=torch.int32)
    rank[order] = torch.arange(1, x.numel() + 1, dtype=torch.int32)
    distinct, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True)
    sums = torch.zeros_like(distinct, dtype=torch.int32)
    sums.scatter_add_(0, inverse, rank)
    return (sums / counts)[inverse]


def runs(x):
    """Of a tensor with more dimensions than one the elements are asked for."""
    values, inverse = torch.unique_consecutive(x.view(2, -1), return_inverse=True)
    return values[inverse] * 2 + torch.unique(x.view(2, -1)).sum()
