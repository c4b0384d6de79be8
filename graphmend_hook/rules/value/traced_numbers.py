"""Numbers that are read out of tensors, ``tensor.item()`` and kin, for the sake of a comparison: they stay tensors.

Where they cannot, because Python's numbers would give something else, they are read after all, and Dynamo breaks there.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, is_symbol
from ...engine.epilogue.deferral import without_gradient
from ..shared.traced_conditions import are_same_shapes, may_join, may_join_by_elements, undecided
from ..shared.traced_operations import is_tensor
from .traced import read

_WHOLE = 2**53  # the whole numbers that float64 holds exactly


def number(given: Any, kind: Any = None) -> Any:
    """``given.item()`` as a tensor () of the dtype that holds what Python's numbers hold: int64 or float64.

    kind: it is ``kind(given)``, of `float` or `int`; what they are given may be anything.
    """
    if isinstance(given, torch.Tensor) and may_join(given) and not _is_for_python(kind, given):
        if given.dtype.is_floating_point:
            return without_gradient(given).reshape(()).to(torch.float64)
        if not given.dtype.is_complex and given.dtype is not torch.uint64:
            whole = without_gradient(given).reshape(()).to(torch.int64)
            return whole.to(torch.float64) if kind is float else whole
    return given.item() if kind is None else kind(given)


def _is_for_python(kind: Any, tensor: torch.Tensor) -> bool:
    """Has Python to read the number: `float` warns of a gradient, `int` cuts a fraction off?"""
    return tensor.dtype.is_floating_point and (kind is int or (kind is float and tensor.requires_grad))


def count_selected(tensor: Any, mask: Any) -> Any:
    """``tensor[mask].numel()``, counted without making the selection."""
    if (
        may_join_by_elements(tensor, mask)
        and mask.dtype is torch.bool
        and mask.dim()
        and are_same_shapes(tensor.shape[: mask.dim()], mask.shape)
    ):
        return mask.sum() * tensor.shape[mask.dim() :].numel()
    return tensor[mask].numel()


def compare(name: str, left: Any, right: Any, numbers: tuple[bool, bool]) -> Any:
    """``left <op> right`` where `numbers` says which operands are tensors that stand for Python numbers."""
    operation = getattr(operator, name)
    if not undecided(left) and not undecided(right):  # none is a tensor, or a graph break in here runs it for real
        return operation(_read(left, numbers[0]), _read(right, numbers[1]))
    if numbers[0] and _is_beyond(left, right):
        return operation(0, right)
    if numbers[1] and _is_beyond(right, left):
        return operation(left, 0)
    stands = numbers[0] and undecided(left), numbers[1] and undecided(right)  # which of them stand for numbers
    if not all([is_tensor(operand) or not undecided(operand) for operand in (left, right)]):  # noqa: C419
        return operation(_read(left, stands[0]), _read(right, stands[1]))
    if undecided(left) and undecided(right):
        is_exact = all(stands) and left.dtype is right.dtype
    else:
        is_exact = (stands[0] and _is_exact(left, right)) or (stands[1] and _is_exact(right, left))
    if is_exact:
        return operation(left, right)
    return operation(_read(left, stands[0]), _read(right, stands[1]))


def _read(operand: Any, stands_for_number: bool) -> Any:
    return read(operand) if stands_for_number and isinstance(operand, torch.Tensor) else operand


def _is_beyond(tensor: Any, value: Any) -> bool:
    """Is `value` a number that no element of an integer tensor reaches?  All of them compare alike with it."""
    if _is_symbol(value):
        return False
    return type(value) is int and undecided(tensor) and tensor.dtype is torch.int64 and not -(2**63) <= value < 2**63


def _is_symbol(number: Any) -> bool:
    """Is it a whole number that only the graph knows?  Such a number fits into 64 bits."""
    return type(number) is int and in_trace() and _is_of_graph(number)


@question(otherwise=True)
def _is_of_graph(_trace: Trace, number: Variable) -> bool:
    return is_symbol(number)


def _is_exact(tensor: torch.Tensor, value: object) -> bool:
    """Does comparing in the tensor's dtype give what Python gives for the two numbers?"""
    if _is_symbol(value):
        return tensor.dtype is torch.int64
    kind = type(value)
    if kind is bool:
        return True
    if kind is int:
        most = 2**63 - 1 if tensor.dtype is torch.int64 else _WHOLE
        return -most <= value <= most  # type: ignore[operator]
    return kind is float and tensor.dtype is torch.float64
