"""Captured numbers as tensors of the graph, for a branch that one decides: ``if counts[k] == 0: continue``.

A captured number is one of 64 bits, made by an operation of the graph, so a tensor () of int64 holds it to the bit;
what is compared is compared by an operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import Variable, is_known, is_unbacked
from .captured import is_uncaptured

_COMPARED = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})
_NOT = frozenset({operator.not_, torch.sym_not})
_JOINING = frozenset({operator.and_, operator.or_})


def call(trace: Trace, function: Callable[..., Any], *given: Any, **options: Any) -> Variable:
    """A new operation of the graph."""
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builder import wrap_fx_proxy

    args = tuple(each.as_proxy() if isinstance(each, VariableTracker) else each for each in given)
    if isinstance(function, type(torch.Tensor.to)):
        proxy = trace.output.create_proxy("call_method", function.__name__, args, options)
    else:
        proxy = trace.output.create_proxy("call_function", function, args, options)
    return wrap_fx_proxy(trace.translator, proxy)


def tensor_of(trace: Trace, number: Variable) -> Variable:
    """The tensor () of the graph that holds the number, or the answer of Python's; None if it is none of the data's.

    None, too, where the trace knows the answer whatever the data is.
    """
    value = getattr(number, "sym_num", None)
    if (
        is_uncaptured(trace.compilation)
        or not isinstance(value, (torch.SymInt, torch.SymBool))
        or not is_unbacked(value)
    ):
        return None
    if isinstance(value, torch.SymBool) and (is_known(value) or is_known(torch.sym_not(value))):
        return None
    node = number.as_proxy().node
    return _tensor_of(trace, node, _device_of(node))


def _device_of(node: torch.fx.Node) -> torch.device | None:
    """That of the tensor that the number was read from, or is a size of."""
    waiting = [node]
    for each in waiting:
        value = each.meta.get("example_value")
        if isinstance(value, torch.Tensor):
            return value.device
        waiting += each.all_input_nodes
    return None


def _tensor_of(trace: Trace, node: Any, device: torch.device | None) -> Variable:
    """The tensor that a node which gives a number, or an answer, is calculated as."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    if isinstance(value, torch.SymInt):
        number = torch.fx.Proxy(node, trace.output.current_tracer)
        return call(trace, torch.scalar_tensor, number, dtype=torch.int64, device=device)
    if not isinstance(value, torch.SymBool):
        return None
    operands = [each if type(each) is int else _tensor_of(trace, each, device) for each in node.args]
    if any(operand is None for operand in operands):
        return None
    if node.target in _COMPARED or node.target in _JOINING:
        return call(trace, node.target, *operands)
    return call(trace, torch.logical_not, *operands) if node.target in _NOT else None
