"""Programs whose first input has a size that the user marks as dynamic, and whose last has a size that is not marked."""

from __future__ import annotations

import torch

Given = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def gives_one_or_the_other(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 0:
        return b + 1
    return x + 1


def gives_an_input(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = b if c.sum() > 0 else x
    return y * 2


def broadcasts_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if c.sum() > 9:
        y = x + b
    return y


def joins_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if c.sum() > 0:
        y = torch.cat([b[:3], b[3:]])
    return y


def reshapes_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if c.sum() > 9:
        y = x.reshape(6)
    return y + 1


def expands_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if c.sum() > 0:
        y = c.sum().expand(6)
    return y + 1


def compares_the_size_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x
    if c.sum() > 9 and x.shape[0] == 6:
        y = x + 1
    return y * 2


def calls_in_a_side(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 9:
        return _added(x, b)
    return x + 1


def _added(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x + b


def nests_branches(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x
    if c.sum() > 0:
        y = b + 1 if b.sum() > 3 else b - 1
    return y


def has_a_right_operand(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 9 and (x + b).sum() > 0:
        return x + 1
    return x - 1


def asks_whether_they_are_equal(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 0 or torch.equal(x, b):
        return x + 1
    return x - 1


def asks_whether_they_are_close(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x + 1 if torch.allclose(x, b) else x - 1


def has_a_guard_before_both(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if c.sum() > 9:
        raise ValueError("too large")
    return y + b


def prints_before_both(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("here")
    return y + b


def selects_from_the_other(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if torch.isnan(x).any():
        x = torch.where(torch.isnan(x), b, x)
    return x + 1


def lists_the_numbers(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return c * sum(x.long().tolist())


def counts_under_the_others_mask(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x + 1 if x[b > 0].numel() > 3 else x - 1


def writes_under_the_others_mask(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    if c.sum() > 9:
        y[b > 0] = 0
    return y


def clamps(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if torch.isinf(x).any():
        x = torch.clamp(x, -10, 10)
    return x + 1


def divides_by_the_size(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 0:
        x = x / x.shape[0]
    return x


def raises_with_the_shape(x: torch.Tensor, c: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if c.sum() > 9:
        raise ValueError(f"too large: {x.shape}")
    return x + 1
