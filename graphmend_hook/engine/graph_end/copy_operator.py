"""The operator of graphs that keeps what a tensor holds: a copy that no pass of a compiler takes for anything else.

Of `aten.clone`, and of whatever gives the numbers of its operand, Inductor takes the operand itself.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..operators import define, defined, set_gradient

_NAME = "kept"


@functools.cache
def operator() -> Any:
    """It gives a new tensor, whose gradient is the operand's."""
    library = define(_NAME, "(Tensor tensor) -> Tensor", torch.clone, torch.clone)
    set_gradient(library, _NAME, lambda _context, gradient: gradient)
    return defined(_NAME)
