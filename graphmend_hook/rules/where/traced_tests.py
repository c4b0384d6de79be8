"""What ``and`` and ``or`` give where data decides which of their operands that is."""

from __future__ import annotations

from typing import Any

import torch

from ...engine.door.question import in_trace
from ..shared.traced_conditions import holds_data
from ..shared.traced_selection import stands_for_both
from ..shared.traced_sides import Unspeculable
from .codes import SIDES_DIFFER


def one_and_other(left: Any, right: Any) -> Any:
    """``left and right``, of which both are tensors () of bool, or bools that exist behind the graph."""
    return _joined(left, right, left & right if _are_alike(left, right) else None)


def one_or_other(left: Any, right: Any) -> Any:
    """``left or right``, of the same."""
    return _joined(left, right, left | right if _are_alike(left, right) else None)


def _are_alike(left: Any, right: Any) -> bool:
    if not isinstance(left, torch.Tensor):
        return type(left) is type(right) is bool
    return _is_truth(left) and _is_truth(right) and left.device == right.device


def _is_truth(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and holds_data(value) and value.dtype is torch.bool and value.dim() == 0


def _joined(left: Any, right: Any, joined: Any) -> Any:
    if joined is None or not in_trace():
        raise Unspeculable(SIDES_DIFFER)
    if isinstance(joined, torch.Tensor) and not stands_for_both(joined, left, right):
        raise Unspeculable(SIDES_DIFFER)  # it is written to, say
    return joined
