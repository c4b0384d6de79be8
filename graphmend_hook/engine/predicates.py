"""What the graph has decided, read once it has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch


def read(predicates: Sequence[torch.Tensor]) -> list[bool]:
    """The values of tensors () of bool, with one look at each device."""
    values: dict[torch.device, Iterator[bool]] = {}
    for device in {predicate.device for predicate in predicates}:
        values[device] = iter(torch.stack([one for one in predicates if one.device == device]).tolist())
    return [next(values[predicate.device]) for predicate in predicates]
