"""Whole numbers that are used as numbers alone: metrics and losses, as people write them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass
class Statistics:
    loss: float
    words: int


def a_ratio(h: torch.Tensor, y: torch.Tensor) -> Any:
    count, right = int((y > 0).sum()), int(((h.argmax(1) == y) & (y > 0)).sum())
    return h.sum(), {"recall": right / count if count else 1}


def a_ratio_by_a_branch(h: torch.Tensor, y: torch.Tensor) -> Any:
    count, right = (y > 0).sum().item(), (h.argmax(1) == y).sum().item()
    if count > 0:
        ratio = right / count
    else:
        ratio = 0.0
    return h.sum(), ratio


def a_mean_of_what_counts(h: torch.Tensor, y: torch.Tensor) -> Any:
    count = (y > 0).sum().item()
    if count == 0:
        return h.sum() * 0, 0
    return h.sum() / count, count


def divides_by_at_least_one(h: torch.Tensor, y: torch.Tensor) -> Any:
    count = (y > 0).sum().item()
    loss = torch.nn.functional.cross_entropy(h, y, reduction="sum")
    return loss / float(max(count, 1)), count


def of_a_selection(h: torch.Tensor, y: torch.Tensor) -> Any:
    right = h.argmax(1).eq(y).masked_select(y.ne(0)).sum().item()
    return h.sum(), right


def in_a_class(h: torch.Tensor, y: torch.Tensor) -> Any:
    found = Statistics(h.sum().item(), (y + 1).sum().item())
    return h.sum(), found.loss, found.words + 1


def an_exponential_of_what_is_bounded(h: torch.Tensor, y: torch.Tensor) -> Any:
    loss = h.exp().sum().item()
    return h.sum(), math.exp(min(loss, 100)), math.log(max(loss, 1e-8)), math.sqrt(abs(loss))


def a_mean_of_numbers(h: torch.Tensor, y: torch.Tensor) -> Any:
    found, total = [], h.new_zeros(())
    for part in (slice(0, 2), slice(2, 4)):
        loss = h[part].pow(2).mean()
        found.append(loss.item())
        total = total + loss
    return total, float(np.mean(found)), sum(found) / len(found)


def a_size_all_the_same(h: torch.Tensor, y: torch.Tensor) -> Any:
    """A number that is compared, and a size: the trace captures it then."""
    count = (y > 0).sum().item()
    if count == 0:
        return h.sum(), h[:0].sum()
    return h.sum(), h[:count].sum()


def selected_by_other_means(h: torch.Tensor, y: torch.Tensor) -> Any:
    """The mask has another shape, so no rule knows what is selected: Dynamo asks for a shape that the data decides."""
    chosen = torch.masked_select(h, (y > 0).unsqueeze(1))
    return chosen.sum(), torch.argwhere(h > 0).sum()


NAMES = [name for name, value in vars().items() if getattr(value, "__module__", "") == __name__ and name[0].islower()]
