"""The operators of graphs that stand for functions of libraries (`graphmend_hook.source.library_functions`)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch.autograd import forward_ad

from ...source.library_functions import BY_PLACE, NAMESPACE, LibraryOperator
from ..attempt.as_written import is_as_written
from ..epilogue.deferral import constant_of, has_interpreter, is_autocast, is_in_a_mode
from .question import question
from .tracer import Trace, is_caught
from .variables import Variable, fake_of, is_contiguous, is_known, is_plain_tensor, is_unbacked, leaves_of

_made: dict[CodeType, Any] = {}  # operators, by the code of the functions that they call


@question(otherwise=None)
def operator_of(trace: Trace, operands: Variable, is_as_long_as_data: bool) -> Any:
    """The operator that stands for the function that is being traced; None where its body is to be traced.

    operands: the tuple of its arguments.  is_as_long_as_data: is a length of its result for the data to decide?
    """
    frame = next(trace.frames_outside())
    operator = BY_PLACE.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
    if operator is None or operator.is_as_long_as_data is not is_as_long_as_data:
        return None
    if _is_told(trace) or not _fits(operator, operands.realize().items):
        return None
    code: CodeType = frame.f_code
    function = inspect.unwrap(getattr(sys.modules[operator.module], operator.name))
    if getattr(function, "__code__", None) is not code:  # another one of that name
        return None
    if code not in _made:
        _made[code] = _operator(operator, function)
    return constant_of(trace, _made[code], "graphmend_operator")


def _is_told(trace: Trace) -> bool:
    """Could anybody tell the operator from what it does, or may it not be there where the graph is called?"""
    is_seen = has_interpreter() or is_autocast() or is_in_a_mode(trace)
    return is_seen or trace.compilation.is_saved or trace.is_in_a_body or is_caught(trace) or is_as_written(trace)


def _fits(operator: LibraryOperator, operands: list[Variable]) -> bool:
    """Are they what the function expects, and no graph can be made of what it does with them?"""
    tensors = []
    for operand, kind in zip(operands, operator.parameters.values(), strict=True):
        if kind == "Tensor":
            if not is_plain_tensor(operand):
                return False
            tensors.append(fake_of(operand))
        elif not (_is_whole(operand) if kind.startswith("SymInt") else operand.is_python_constant()):
            return False
    first = tensors[0]
    if operator.has_gradients and not (_is_untrained(tensors) and all(map(is_contiguous, tensors))):
        return False
    return (
        all(tensor.dim() and tensor.device == first.device and tensor.layout is torch.strided for tensor in tensors)
        and all(is_known(tensor.shape[0] == first.shape[0]) for tensor in tensors)
        and (operator.always or any(is_unbacked(tensor.shape) for tensor in tensors))
    )


def _is_untrained(tensors: list[torch.Tensor]) -> bool:
    """Are no gradients recorded of them?"""
    is_recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return not is_recorded and forward_ad._current_level < 0


def _is_whole(variable: Variable) -> bool:
    """Is it a whole number, or a tuple or list of such, which may be symbols?"""
    return all(isinstance(item, (int, torch.SymInt)) for item in leaves_of(fake_of(variable)))


def _operator(operator: LibraryOperator, function: Callable[..., Any]) -> Any:
    """An operator that calls the function."""
    operators, name = getattr(torch.ops, NAMESPACE), operator.name
    if hasattr(operators, name):  # another one of that name, or the module has been loaded anew
        name = f"{name}_{len(_made)}"
    made = torch.library.custom_op(
        f"{NAMESPACE}::{name}",
        function,
        mutates_args=(),
        schema=operator.schema,
        tags=[torch.Tag.cudagraph_unsafe],  # it waits for the data
    )

    def shaped(*operands: Any) -> Any:
        length = torch.library.get_ctx().new_dynamic_size() if operator.is_as_long_as_data else 0
        if operator.checked_by is not None:
            _check(*operator.checked_by, length, dict(zip(operator.parameters, operands, strict=True)))
        return operator.result(length, *operands)

    made.register_fake(shaped)
    return getattr(operators, name)


def _check(checking: str, names: tuple[str, ...], length: torch.SymInt, operands: dict[str, Any]) -> None:
    """Raise what the operator `checking` raises of the operands of those names; the size that it makes is forgotten."""
    namespace, _, name = checking.partition("::")
    with length.node.shape_env.ignore_fresh_unbacked_symbols():
        getattr(getattr(torch.ops, namespace), name)(*[operands[each] for each in names])
