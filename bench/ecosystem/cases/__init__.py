"""The cases of the ecosystem: by library, what is compiled and what it is called with.

A module here stands for a library, is imported only where the library is installed, and has

CASES: by name, how a function or a module is built, and how the arguments of one call are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Case = tuple[Callable[[], Callable[..., Any]], Callable[[], tuple[Any, ...]]]


def image(count: int = 1, channels: int = 3, side: int = 32) -> torch.Tensor:
    """Images with values from 0 to 1, shape (count, channels, side, side)."""
    return torch.rand(count, channels, side, side)


def labels(count: int, classes: int) -> torch.Tensor:
    """Whole numbers from 0 to `classes` - 1."""
    return torch.randint(0, classes, (count,))


def boxes(count: int, side: float = 32.0) -> torch.Tensor:
    """Boxes (x1, y1, x2, y2) of at least one pixel within a square."""
    corner = torch.rand(count, 2) * (side / 2)
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * (side / 2 - 1)], 1)
