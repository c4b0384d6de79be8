"""Lists of tensors to which the data decides what is appended: ``sum(losses) / len(losses)``, ``torch.stack(losses)``.

In such a list (`late_lists`) each tensor stands behind whether it is in it, and is zero where it is not.  A sum is that
of all; what `torch.stack` or `torch.cat` gives are the rows, of all, that are in it, so the data decides how many.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..door.tracer import Trace, trace_at
from ..door.variables import Variable, fake_of, is_contiguous, same_sizes, tensor_node, tuple_of
from ..facts.selections import empty_unless
from . import late_lists, late_numbers, number_tensors
from .captured_tensors import call

Joining = Callable[[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]], "torch.Tensor | None"]
_JOINED: dict[Any, Joining] = {}  # by the function of Python or torch: traced code that makes its result


def joins(*functions: Callable[..., Any]) -> Callable[[Joining], Joining]:
    """Mark what is traced where one of the functions is given such a list: of its tensors, and whether each is in it.

    It gives None where it cannot be.  One tensor of the list is in it, else the graph is run again as it was written.
    """

    def mark(joining: Joining) -> Joining:
        _JOINED.update(dict.fromkeys(functions, joining))
        return joining

    return mark


def add_handlers(_kind: Any) -> None:
    """Let functions of torch take such a list."""
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    otherwise = TorchInGraphFunctionVariable.call_function

    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Sequence[Variable], kwargs: Any) -> Any:
        trace = trace_at(translator) if function.value in _JOINED and args and late_lists.is_list(args[0]) else None
        if trace is None:
            return otherwise(function, translator, args, kwargs)
        dimensions = [*args[1:], *kwargs.values()]
        is_first = all(each.is_python_constant() and each.as_python_constant() == 0 for each in dimensions)
        is_known = is_first and len(dimensions) < 2 and kwargs.keys() <= {"dim", "axis"}
        made = joined(trace, function.value, args[0]) if is_known else None
        return late_numbers.give_up(args[0]) if made is None else made

    TorchInGraphFunctionVariable.call_function = call_function


def joined(trace: Trace, function: Callable[..., Any], given: Variable) -> Variable:
    """What the function makes of the list; None where it holds other things than tensors, or that cannot be."""
    from torch._dynamo.variables.base import VariableTracker

    parts = late_lists.parts_of(given) or ()
    tensors = parts[1::2]
    if not tensors or not all(each.is_tensor() for each in tensors):
        return None
    is_joined = function not in (sum, torch.stack)
    if not _are_alike([fake_of(each) for each in tensors], is_joined):
        return None
    are_in = [_mask(trace, each, fake_of(tensors[0]).device) for each in parts[::2]]
    if any(each is None for each in are_in):
        return None
    if late_lists.predicates_of(given) is not None:
        none = call(
            trace, torch.logical_not, functools.reduce(functools.partial(call, trace, torch.logical_or), are_in)
        )
        if not number_tensors.may_expect_false(trace, none):
            return None
    if is_joined and all(map(_is_empty_unless, tensors, are_in)):
        return call(trace, torch.cat, [each.as_proxy() for each in tensors])
    joining = VariableTracker.build(trace.translator, _JOINED[function])
    made = trace.translator.inline_user_function_return(joining, [tuple_of(tensors), tuple_of(are_in)], {})
    return made if made.is_tensor() else None


def _are_alike(fakes: Sequence[torch.Tensor], is_joined: bool) -> bool:
    """Is what is made of some of the tensors of the type, the shape and the layout of what is made of all?"""
    first = fakes[0]
    if any(fake.dtype is not first.dtype or not is_contiguous(fake) for fake in fakes):
        return False
    shapes = [fake.shape[int(is_joined) :] for fake in fakes]
    return (first.dim() > 0 or not is_joined) and all(same_sizes(shape, shapes[0]) is True for shape in shapes)


def _is_empty_unless(tensor: Variable, is_in: Variable) -> bool:
    """Has the tensor no rows where it is not in the list?"""
    rows, mask = fake_of(tensor).shape[0], tensor_node(is_in)
    if mask.target is torch.full:
        return True  # it is in the list, whatever the data is
    return isinstance(rows, torch.SymInt) and rows.node.expr.subs(dict.fromkeys(empty_unless(mask, True), 0)) == 0


def _mask(trace: Trace, is_in: Variable, device: torch.device) -> Variable:
    """Whether a tensor is in the list, as a tensor () of bool of the device; None if it is of another one."""
    if not late_numbers.is_late(is_in):
        return call(trace, torch.full, (), True, dtype=torch.bool, device=device)
    function, operands = is_in.realize().function, is_in.realize().operands
    if late_numbers.is_reading(function):
        fake = fake_of(operands[0])
        return operands[0] if fake.dtype is torch.bool and fake.device == device else None
    parts = [_mask(trace, each, device) for each in operands] if function in (operator.and_, operator.not_) else [None]
    if any(part is None for part in parts):
        return None
    return call(trace, torch.logical_not if function is operator.not_ else torch.logical_and, *parts)
