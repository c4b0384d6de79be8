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
    _check_alike(left, right)
    return _standing(left & right, left, right)


def one_or_other(left: Any, right: Any) -> Any:
    """``left or right``, of the same."""
    _check_alike(left, right)
    return _standing(left | right, left, right)


def _check_alike(left: Any, right: Any) -> None:
    """Raise Unspeculable where what stands for both could be told from the one of them that eager has."""
    if not in_trace() or not (_are_truths(left, right) or type(left) is type(right) is bool):
        raise Unspeculable(SIDES_DIFFER)


def _are_truths(left: Any, right: Any) -> bool:
    return _is_truth(left) and _is_truth(right) and left.device == right.device


def _is_truth(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and holds_data(value) and value.dtype is torch.bool and value.dim() == 0


def _standing(joined: Any, left: Any, right: Any) -> Any:
    if isinstance(joined, torch.Tensor) and not stands_for_both(joined, left, right):
        raise Unspeculable(SIDES_DIFFER)  # it is written to, say
    return joined
