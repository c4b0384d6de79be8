"""Questions about one operation of a side: is it given tensors, can it fail on them, may its gradient be infinite?

While Dynamo traces they are answered of its own variables, and nothing of it is traced; in non-strict export of the
traced tensors themselves.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from ...engine.door.question import question
from ...engine.door.tracer import Trace, log
from ...engine.door.variables import (
    Variable,
    fake_of,
    is_contiguous,
    is_known,
    is_much,
    is_plain_tensor,
    is_sure,
    is_unbacked,
    leaves_of,
    python_of,
    tensor_node,
    type_of,
    without_hooks,
)
from ...engine.door.variables import is_tensor as is_any_tensor
from ...engine.facts.operations import finds_extreme
from ...engine.facts.writes import memory_of
from ...source.tensor_ops import Operation, operation

_NUMBERS = (bool, int, float)
# Beside tensors, what an operation may be given while it is tried: nothing that has methods of the program's.
_HANDED_OVER = frozenset(
    {
        *(*_NUMBERS, complex, str, type(None), type(...), slice, torch.Size, torch.dtype, torch.device),
        *(torch.layout, torch.memory_format, torch.SymInt, torch.SymFloat, torch.SymBool),
    }
)


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


@question(otherwise=None, elsewhere=lambda name, operands: _of_tensors(name, [*filter(_is_real, operands)], True))
def takes_tensors(_trace: Trace, name: str, operands: Variable) -> bool | None:
    """Does the operator take tensors?  None: such with behaviour of their own, or whole ones that it divides by."""
    tensors = [value for value in operands.realize().items if is_any_tensor(value)]
    return _of_tensors(name, [fake_of(value) for value in tensors], all(map(is_plain_tensor, tensors)))


def _of_tensors(name: str, tensors: list[torch.Tensor], are_plain: bool) -> bool | None:
    divides = name in ("floordiv", "mod")
    if not are_plain or (divides and not all(tensor.dtype.is_floating_point for tensor in tensors)):
        return None
    return bool(tensors)


def _is_real(value: object) -> bool:
    return isinstance(value, torch.Tensor)


_NOT: bool | None = None


@question(otherwise=_NOT)
def may_be_tried(trace: Trace, name: str, function: Variable, arguments: Variable, options: Variable) -> bool | None:
    """May the gradient of the operation be infinite?  None: it may fail, in the trace or when the graph runs.

    name: that of the operation in torch, or of the operator in Python.
    """
    if _can_fail(trace, operation(name), arguments, options):
        return None
    if not _succeeds(trace, name, function, arguments, options):
        return None
    return _may_be_infinite(name, arguments.realize().items, _named(options))


def can_fail(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Could the operation fail on whatever data, outside of Dynamo's traces?"""
    known = operation(name)
    values = [*arguments, *options.values()]
    if any(map(_is_real, values[known.operands :])):
        return True
    tensors, numbers = [*filter(_is_real, arguments)], [value for value in values if type(value) in _NUMBERS]
    if _are_unfit(known, tensors, {*map(type, numbers)}):
        return True
    return known.numbers_must_fit and not _all_fit(numbers, tensors, options.get("dtype"))


def _can_fail(trace: Trace, known: Operation, arguments: Variable, options: Variable) -> bool:
    items, named = arguments.realize().items, _named(options)
    values = [*items, *named.values()]
    if any(map(is_any_tensor, values[known.operands :])):
        return True
    variables = [*filter(is_any_tensor, items)]
    if not all(map(is_plain_tensor, variables)):
        return True
    tensors = [fake_of(variable) for variable in variables]
    if any(is_unbacked(tensor.shape) for tensor in tensors):
        return not (known.needs_elements and len(values) == 1 and _is_reduced(trace, variables[0]))
    numbers = [value for value in values if type_of(value) in _NUMBERS]
    if _are_unfit(known, tensors, {*map(type_of, numbers)}):
        return True
    dtype = fake_of(named["dtype"]) if "dtype" in named else None
    return known.numbers_must_fit and not _all_fit([*map(fake_of, numbers)], tensors, dtype)


def _named(options: Variable) -> dict[str, Variable]:
    return {python_of(key.vt): value for key, value in options.realize().items.items()}


def _is_reduced(trace: Trace, tensor: Variable) -> bool:
    """Does the graph find the least or the greatest element of the tensor already, and fails if it has none?"""
    node = tensor_node(tensor)
    return any(user.args == (node,) and finds_extreme(user) for user in trace.graph.nodes)


def _are_unfit(known: Operation, tensors: list[torch.Tensor], of_numbers: set[type]) -> bool:
    """Is the operation not made for such operands?  of_numbers: the types of those that are numbers of Python."""
    return (known.refuses_booleans and bool in of_numbers) or any(_is_unfit(known, tensor) for tensor in tensors)


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
    if isinstance(number, bool | torch.SymBool) or dtype is torch.bool:  # a mask, or what takes any
        return True
    if isinstance(number, torch.Tensor):  # a number that only the graph knows
        return False
    if dtype.is_floating_point:
        is_finite = type(number) is not float or math.isfinite(number)
        return not is_finite or is_sure(abs(number) <= torch.finfo(dtype).max)
    limits = torch.iinfo(dtype)
    is_whole = isinstance(number, int | torch.SymInt)
    return is_whole and is_sure(number >= limits.min) and is_sure(number <= limits.max)


def _may_be_infinite(name: str, operands: list[Variable], options: dict[str, Variable]) -> bool:
    """Is a gradient computed with the operation that may be infinite where its operands are finite?"""
    if operation(name).is_smooth or not torch.is_grad_enabled():
        return False
    if not any(is_any_tensor(value) and fake_of(value).requires_grad for value in operands):
        return False
    return bool(options) or not _only_scales(name, operands)


def _only_scales(name: str, operands: list[Variable]) -> bool:
    """Is a tensor multiplied, or divided, by a number that keeps a zero gradient zero: finite, and no divisor of 0?"""
    divides = name in ("truediv", "true_divide", "div")
    if not (divides or name in ("mul", "multiply")) or len(operands) != 2:
        return False
    tensor, number = operands if divides or is_any_tensor(operands[0]) else operands[::-1]
    if not is_any_tensor(tensor) or type_of(number) not in (int, float):
        return False
    dtype, by = fake_of(tensor).dtype, fake_of(number)
    if not dtype.is_floating_point or isinstance(by, torch.Tensor):  # a number that only the graph knows
        return False
    limits = torch.finfo(dtype)
    return is_sure(abs(by) <= limits.max) and (not divides or is_sure(abs(by) >= limits.tiny))


def _succeeds(trace: Trace, name: str, function: Variable, arguments: Variable, options: Variable) -> bool:
    """Would the call succeed, and is the function the one of torch that has that name?

    The call is made on the fake tensors that stand for the traced ones, so it can only fail on types and shapes, as
    tracing it would; but a failure while tracing ends the trace.  What it needs of memory has to be little, or of the
    order of what it is given.
    """
    called = python_of(function)
    homes = (torch, torch.nn.functional, torch.Tensor, operator)
    if not any(getattr(home, name, None) is called for home in homes):
        return False
    try:
        operands, named = fake_of(arguments), fake_of(options)
    except NotImplementedError:  # as for a method that is bound to a tensor
        return False
    if not all(type(leaf) in _HANDED_OVER or isinstance(leaf, torch.Tensor) for leaf in leaves_of((operands, named))):
        return False  # a method of the program's would be called, such as `__rmul__`
    try:
        with without_hooks(), trace.translator.fake_mode:
            result = called(*operands, **named)
            return not is_much(result, [operands, named])
    except Exception as error:
        log.debug("%s would fail: %s", name, error)
        return False
