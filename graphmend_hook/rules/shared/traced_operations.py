"""Questions about one operation of a side: is it given tensors, can it fail on them?

While Dynamo traces they are answered of its own variables, and nothing of it is traced; in non-strict export of the
traced tensors themselves.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import (
    Variable,
    fake_of,
    is_contiguous,
    is_known,
    is_plain_tensor,
    is_sure,
    is_unbacked,
    tensor_node,
)
from ...engine.facts.writes import memory_of
from ...source.tensor_ops import Operation, operation

_NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)


@question(otherwise=False, elsewhere=lambda value: isinstance(value, torch.Tensor))
def is_tensor(_trace: Trace, value: Variable) -> bool:
    """Is it a tensor without behaviour of its own?  While exporting, the tracer's own kinds are."""
    return is_plain_tensor(value)


@question(otherwise=False, elsewhere=lambda _tensor: True)
def has_known_shape(_trace: Trace, tensor: Variable) -> bool:
    """Are all sizes of the tensor numbers, or symbols with a value in the trace?  Asking for others breaks it."""
    return not is_unbacked(fake_of(tensor).shape)


@question(otherwise=False, elsewhere=lambda result, receiver: result is receiver)
def gives_back(_trace: Trace, result: Variable, receiver: Variable) -> bool:
    """Has ``receiver.to(...)`` given the tensor itself?  If it makes another, that has memory of its own."""
    memories = [memory_of([tensor_node(value)]) for value in (result, receiver)]
    return bool(memories[0]) and memories[0] == memories[1]


def _is_real(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def can_fail(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Could the operation of that name fail on whatever data?"""
    known = operation(name)
    values = [*arguments, *options.values()]
    if any(map(_is_real, values[known.operands :])):
        return True
    tensors, numbers = [*filter(_is_real, arguments)], [value for value in values if type(value) in _NUMBERS]
    if _are_unfit(known, tensors, {*map(type, numbers)}):
        return True
    return known.numbers_must_fit and not _all_fit(numbers, tensors, options.get("dtype"))


def _are_unfit(known: Operation, tensors: list[torch.Tensor], of_numbers: set[type]) -> bool:
    """Is the operation not made for such operands?  of_numbers: the types of those that are numbers of Python."""
    return (known.refuses_booleans and not of_numbers.isdisjoint((bool, torch.SymBool))) or any(
        _is_unfit(known, tensor) for tensor in tensors
    )


def _is_unfit(known: Operation, tensor: torch.Tensor) -> bool:
    floating = tensor.dtype.is_floating_point
    return bool(
        tensor.layout is not torch.strided
        or tensor.dtype.is_complex
        or tensor.is_quantized
        or (known.needs_floats and not floating)
        or (known.needs_integers and floating)
        or (known.needs_elements and not is_known(tensor.numel() > 0))
        or (known.refuses_booleans and tensor.dtype is torch.bool)
        or (known.must_be_contiguous and not is_contiguous(tensor))
        or (known.is_without_gradient and tensor.requires_grad and torch.is_grad_enabled())
    )


def _all_fit(numbers: list[Any], tensors: list[torch.Tensor], dtype: torch.dtype | None) -> bool:
    """Can a tensor of `dtype`, or of those of the tensors, hold each of the numbers?"""
    into = {dtype or tensor.dtype for tensor in tensors} or {dtype or torch.float32}
    return all(_fits(number, kind) for number in numbers for kind in into)


def _fits(number: Any, dtype: torch.dtype) -> bool:
    if isinstance(number, (bool, torch.SymBool)) or dtype is torch.bool:  # a mask, or what takes any
        return True
    if isinstance(number, torch.Tensor):  # a number that only the graph knows
        return False
    if dtype.is_floating_point:
        is_finite = type(number) is not float or math.isfinite(number)
        return not is_finite or is_sure(abs(number) <= torch.finfo(dtype).max)
    limits = torch.iinfo(dtype)
    is_whole = isinstance(number, (int, torch.SymInt))
    return is_whole and is_sure(number >= limits.min) and is_sure(number <= limits.max)
