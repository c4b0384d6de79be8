"""The operator of graphs that keeps what a tensor holds: a copy that no pass of a compiler takes for anything else.

Of `aten.clone`, and of whatever gives the numbers of its operand, Inductor takes the operand itself.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ...source.library_functions import NAMESPACE

_NAME = f"{NAMESPACE}::kept"


@functools.cache
def operator() -> Any:
    """It gives a new tensor, whose gradient is the operand's."""
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _libraries.append(library)  # the operator ends with it
    library.define("kept(Tensor tensor) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl("kept", torch.clone, "CompositeExplicitAutograd")
    torch.library.register_fake(_NAME, torch.clone, lib=library)
    torch.library.register_autograd(_NAME, lambda _context, gradient: gradient, lib=library)
    return getattr(torch.ops, NAMESPACE).kept.default


_libraries: list[torch.library.Library] = []
