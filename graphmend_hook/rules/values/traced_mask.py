"""Elements moved under a mask, merged in place: what [Mask] calls while Dynamo traces."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..branches.traced_conditions import has_elements
from ..effects.traced_defer import record

CALLED = ("move",)  # by rewritten code


def move(owner: Any, mask: Any, source: Any, operation: str = "") -> bool:
    """``owner[mask] = source[mask]``, or ``+=`` or ``-=``; False, with nothing done, where it may be something else.

    operation: the name that `operator` has for it: "add", "sub", or "" for the plain assignment.
    """
    if not _is_elementwise(owner, mask, source) or (operation == "sub" and owner.dtype is torch.bool):
        return False
    written = getattr(operator, operation)(owner, source) if operation else source
    owner.copy_(torch.where(_spread(mask, owner), written, owner))
    return True


def _spread(mask: torch.Tensor, owner: torch.Tensor) -> torch.Tensor:
    """The mask, with a dimension for each of `owner`."""
    return mask.reshape(list(mask.shape) + [1] * (owner.dim() - mask.dim()))


def _is_elementwise(owner: Any, mask: Any, source: Any) -> bool:
    if not is_dynamo_compiling():
        return False
    for tensor in (owner, mask, source):
        if not has_elements(tensor) or tensor.layout is not torch.strided:
            return False
    alike = owner.shape == source.shape and owner.dtype is source.dtype and owner.device == source.device
    fits = mask.dtype is torch.bool and 0 < mask.dim() <= owner.dim() and mask.shape == owner.shape[: mask.dim()]
    overlaps = any([step == 0 for step in owner.stride()])  # noqa: C419  Dynamo: no generators
    if alike and fits and mask.device == owner.device and not overlaps:
        return True
    if mask.dtype is torch.bool:
        record("GM106-T01")
    return False
