"""What a side of a branch may do though it is not taken: each function here does it, or raises `Unspeculable`."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from . import dynamo

slice = builtins.slice  # noqa: A001  for rewritten code, where the name may be bound to something else


class Unspeculable(Exception):  # noqa: N818  control flow, not an error
    """A side cannot be evaluated ahead of the decision; the argument is the code of the refusal."""


def is_tensor(value: object) -> bool:
    """Is it a tensor without behaviour of its own?  While exporting, the tracer's own kinds are."""
    if isinstance(value, torch.Tensor):
        if not is_dynamo_compiling():
            return True
        kind = type(value)
        return kind is torch.Tensor or kind is torch.nn.Parameter or kind is torch.nn.Buffer
    return False


def plain(value: Any) -> Any:
    """`value`, which Python is about to look at: not a tensor."""
    if isinstance(value, torch.Tensor):
        raise Unspeculable("GM102-T08")
    return value


def leaf(value: Any) -> Any:
    """`value`, read from an object by one side only: not what is being trained."""
    if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
        raise Unspeculable("GM102-T06")
    return value


def current(graphmend_owner: Any, attribute: str) -> Any:
    """The attribute's value, if assigning to it does no more than to store."""
    if is_dynamo_compiling() and not dynamo.stores_plainly(attribute):
        raise Unspeculable("GM102-T09")
    return leaf(getattr(graphmend_owner, attribute))


def attempt(
    graphmend_name: str,
    graphmend_smooth: bool,
    graphmend_function: Callable[..., Any],
    *graphmend_arguments: Any,
    **graphmend_options: Any,
) -> Any:
    """The call of a torch function of that name, if it cannot fail on these values."""
    _check(graphmend_smooth, graphmend_arguments)
    if is_dynamo_compiling():
        if not dynamo.succeeds():
            raise Unspeculable("GM102-T04")
        return graphmend_function(*graphmend_arguments, **graphmend_options)
    return _tried(graphmend_function, graphmend_arguments, graphmend_options)


def attempt_method(name: str, smooth: bool, receiver: Any, *arguments: Any, **options: Any) -> Any:
    """The call of a tensor's method, if it cannot fail on these values."""
    if not is_tensor(receiver):
        raise Unspeculable("GM102-T04")
    result = attempt(name, smooth, getattr(torch.Tensor, name), receiver, *arguments, **options)
    if name == "to" and result.dtype is receiver.dtype and result.device == receiver.device:
        return receiver  # as `to` itself does
    return result


def operate(name: str, smooth: bool, *operands: Any) -> Any:
    """The operator of that name in the module `operator`, if it cannot fail on these values."""
    if not any([isinstance(operand, torch.Tensor) for operand in operands]):
        return getattr(operator, name)(*operands)
    for operand in operands:
        if isinstance(operand, torch.Tensor) and not is_tensor(operand):
            raise Unspeculable("GM102-T04")
        if name in ("floordiv", "mod", "pow") and isinstance(operand, torch.Tensor):
            if not operand.dtype.is_floating_point:  # division by zero, negative exponents
                raise Unspeculable("GM102-T04")
    return attempt(name, smooth, getattr(operator, name), *operands)


def augmented(name: str, left: Any, right: Any) -> Any:
    """``left <op>= right`` of values that cannot be written in place."""
    if isinstance(left, torch.Tensor) or isinstance(left, (list, dict, set)):
        raise Unspeculable("GM102-T10")
    return operate(name, True, left, right)


def item_of(container: Any, index: Any) -> Any:
    """``container[index]``, if the index does not depend on data."""
    if isinstance(container, torch.Tensor):
        if not (is_tensor(container) and _is_static(index)):
            raise Unspeculable("GM102-T04")
        return attempt("getitem", True, operator.getitem, container, index)
    if not isinstance(container, (tuple, list, dict, str)):
        raise Unspeculable("GM102-T04")
    return leaf(container[plain(index)])


def _is_static(index: Any) -> bool:
    if isinstance(index, tuple):
        return all([_is_static(part) for part in index])
    if isinstance(index, builtins.slice):
        return _is_static(index.start) and _is_static(index.stop) and _is_static(index.step)
    return index is None or index is Ellipsis or type(index) is int


def _check(smooth: bool, arguments: tuple[Any, ...]) -> None:
    """An operation with a singular derivative gives NaN for the gradient of a side that is not taken."""
    if not smooth and torch.is_grad_enabled():
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.requires_grad:
                raise Unspeculable("GM102-T06")


def _tried(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        return function(*arguments, **options)
    except Exception as error:
        raise Unspeculable("GM102-T04") from error
