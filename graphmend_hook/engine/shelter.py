"""Shelters: operations of a region are given other values where it is not taken, so that no gradient becomes NaN.

The backward pass of a graph goes through every region, with zeros from above where it is not taken.  Zero times an
infinity is NaN: so would the gradient be of what the region reads.  An operand behind ``torch.where(taken, x, 0.5)``
gets a gradient that is selected, and is zero where the region is not taken.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..source.tensor_ops import operation
from .door.tracer import Trace
from .door.variables import is_sure, without_hooks
from .facts.operations import fake_arguments, name_of, written_nodes
from .facts.writes import fakes_of, memory_of, written_by
from .region import conditions


@dataclass
class Shelters:
    """Those of an attempt.

    operands: what is sheltered, by the node that stands for it.
    safe: the operations from which no NaN comes where their region is not taken.
    """

    operands: dict[torch.fx.Node, torch.fx.Node] = field(default_factory=dict)
    safe: set[torch.fx.Node] = field(default_factory=set)


def shelter(trace: Trace, made: Sequence[torch.fx.Node]) -> torch.fx.Node | list[torch.fx.Node]:
    """Shelter what these operations of a region need sheltered; gives the shelters, or an operation that cannot be.

    An operand needs it if it was made outside, or comes from there by operations that only hand gradients on.
    """
    shelters, new = trace.compilation.of(Shelters), list[torch.fx.Node]()
    taken: torch.fx.Node | None = None
    for node in made:
        operands = {operand for operand in node.all_input_nodes if is_trained(operand) and operand not in shelters.safe}
        if operands and is_trained(node):
            if operation(name_of(node).rstrip("_")).is_smooth or _only_scales(node):
                if written := written_by(node):
                    shelters.safe = {one for one in shelters.safe if memory_of([one]).isdisjoint(written)}
                continue
            taken = taken or taken_at(trace, made[0])
            found = None if taken is None else _shelter(trace, node, operands, taken)
            if found is None:
                return node
            shelters.operands |= found
            shelters.safe |= found.keys()
            new += found
        shelters.safe.add(node)
    return new


def _only_scales(node: torch.fx.Node) -> bool:
    """Is a tensor multiplied, or divided, by a number that keeps a zero gradient zero: finite, and no divisor of 0?"""
    divides = name_of(node).rstrip("_") in ("div", "true_divide")
    operands, _ = fake_arguments(node)
    if not (divides or name_of(node).rstrip("_") in ("mul", "multiply")) or len(operands) != 2 or node.kwargs:
        return False
    tensor, number = operands if divides or isinstance(operands[0], torch.Tensor) else operands[::-1]
    if not isinstance(tensor, torch.Tensor) or not isinstance(number, (int, float, torch.SymInt, torch.SymFloat)):
        return False
    limits = torch.finfo(tensor.dtype) if tensor.dtype.is_floating_point else None
    if limits is None or not is_sure(abs(number) <= limits.max):
        return False
    return not divides or is_sure(abs(number) >= limits.tiny)


def taken_at(trace: Trace, before: torch.fx.Node | None = None) -> torch.fx.Node | None:
    """A node that says whether all open regions are taken; None where that is not known.

    It is made right before another one, or at the end of the graph.
    """
    found: torch.fx.Node | None = None
    for predicate, is_where_true in conditions(trace) or ():
        condition = predicate if is_where_true else add(trace, before, operator.invert, predicate)
        found = condition if found is None else add(trace, before, operator.and_, found, condition)
    return found


def add(trace: Trace, before: torch.fx.Node | None, function: Callable[..., Any], *given: Any) -> torch.fx.Node:
    """A new operation of the graph, right before another one, or at its end."""
    graph = trace.graph
    with contextlib.nullcontext() if before is None else graph.inserting_before(before):
        node = graph.call_function(function, given)
    args, _ = fake_arguments(node)
    with without_hooks(), trace.translator.fake_mode:
        node.meta["example_value"] = function(*args)
    return node


def is_trained(node: torch.fx.Node) -> bool:
    """Does it stand for a tensor that requires a gradient?"""
    return any(fake.requires_grad for fake in fakes_of(node))


def _shelter(
    trace: Trace, node: torch.fx.Node, operands: set[torch.fx.Node], taken: torch.fx.Node
) -> dict[torch.fx.Node, torch.fx.Node] | None:
    """Let the operation be given other values of these operands where its region is not taken; None if that cannot be.

    Each use is sheltered by itself, the last first: so autograd adds the gradients up in eager's order.
    """
    leaves, form = tree_flatten((node.args, node.kwargs))
    found: dict[torch.fx.Node, torch.fx.Node] = {}
    for place in reversed(range(len(leaves))):
        operand = leaves[place]
        if not isinstance(operand, torch.fx.Node) or operand not in operands:
            continue
        value = operand.meta.get("example_value")
        is_on_device = isinstance(value, torch.Tensor) and value.device == taken.meta["example_value"].device
        if not is_on_device or operand in written_nodes(node):
            return None
        leaves[place] = selected = add(trace, node, torch.where, taken, operand, 0.5)
        instead = selected.meta["example_value"]
        if instead.stride() != value.stride() or instead.dtype is not value.dtype:
            return None
        found[selected] = operand
    node.args, node.kwargs = tree_unflatten(leaves, form)
    return found
