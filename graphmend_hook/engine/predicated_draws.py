"""Random numbers that a region draws: they are drawn where the region is taken, and the generator stays else.

``torch.randn_like(x)`` becomes an operator that is told whether the region is taken, and ``x.uniform_()`` a copy of
what it gives.  ``dropout(x, 0.1)`` becomes a product with what eager multiplies by.  This is so on a CPU, whose
generator can be left as it was; on a GPU the graph would have to wait for the predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .door.tracer import Trace
from .door.variables import is_wrapper
from .drawing_operator import UnknownCallError, encoded, in_place, noise, operator
from .facts.operations import facts_of, is_of_torch, written_nodes
from .facts.writes import fakes_of
from .region import Regions, conditions
from .shelter import add, taken_at

_DROPOUT = (torch.nn.functional.dropout, torch.dropout)


@dataclass
class _Count:
    """How many there are in an attempt."""

    of_draws: int = 0


def predicate(trace: Trace, node: torch.fx.Node) -> None:
    """Let the operation draw only where all open regions are taken, if it draws from torch's own generator of a CPU."""
    facts = facts_of(node)
    if not facts.draws or facts.writes is None or facts.communicates or not is_of_torch(node) or not _is_plain(node):
        return
    if trace.compilation.is_saved or trace.is_in_a_body or not conditions(trace):
        return
    try:
        if node.target in _DROPOUT:
            _drop_out(trace, node)
        elif written := written_nodes(node):
            if node.op == "call_method" and written == [*node.args[:1]]:
                target, *args = node.args
                drawn = _drawn(trace, node, in_place, (target, node.target, *args), node.kwargs)
                node.target, node.args, node.kwargs = "copy_", (target, drawn), {}
        elif not node.meta["example_value"].requires_grad:
            drawn = _drawn(trace, node, node.target, node.args, node.kwargs)
            node.op, node.target, node.args, node.kwargs = "call_function", drawn.target, drawn.args, {}
            trace.compilation.of(Regions).predicated.add(node)
            trace.graph.erase_node(drawn)
    except UnknownCallError:
        return


def _is_plain(node: torch.fx.Node) -> bool:
    """Are all tensors on a CPU, and does it give one?"""
    values = [fake for each in (node, *node.all_input_nodes) for fake in fakes_of(each)]
    is_one = isinstance(node.meta.get("example_value"), torch.Tensor)
    return is_one and all(
        fake.device.type == "cpu" and fake.layout is torch.strided and not is_wrapper(fake) for fake in values
    )


def _drop_out(trace: Trace, node: torch.fx.Node) -> None:
    given = dict(zip(("input", "p", "training", "inplace"), node.args, strict=False)) | {**node.kwargs}
    tensor, probability, is_in_place = given.get("input"), given.get("p", 0.5), given.get("inplace", False)
    if type(probability) not in (float, int) or not 0 < probability < 1 or type(is_in_place) is not bool:
        return  # all elements are dropped, or none
    drawn = _drawn(trace, node, noise, (tensor, float(probability)), {})
    node.op, node.target, node.args, node.kwargs = "call_method", "mul_" if is_in_place else "mul", (tensor, drawn), {}


def _drawn(trace: Trace, node: torch.fx.Node, function: Any, args: Any, options: Any) -> torch.fx.Node:
    """What the operator gives that calls the function; no two calls are the same, or a compiler would merge them."""
    count = trace.compilation.of(_Count)
    count.of_draws += 1
    call, tensors, numbers = encoded(function, args, options)
    taken = taken_at(trace, node)
    if taken is None or taken.meta["example_value"].device.type != "cpu":
        raise UnknownCallError
    drawn = add(trace, node, operator(), taken, call, tensors, numbers, count.of_draws)
    trace.compilation.of(Regions).predicated.add(drawn)
    return drawn
