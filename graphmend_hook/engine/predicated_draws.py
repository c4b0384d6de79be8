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
from .door.variables import is_wrapper, same_sizes
from .drawing_operator import UnknownCallError, encoded, in_place, noise, operator
from .facts.operations import facts_of, is_of_torch, written_nodes
from .facts.writes import fakes_of
from .region import Regions, conditions
from .shelter import add, taken_at

# Functions that say of tensors without memory which shape they would give.
_SHAPED = frozenset({"multinomial", "normal", "rand_like", "randint_like", "randn_like"})
_DROPOUT = (torch.nn.functional.dropout, torch.dropout)


@dataclass
class _Count:
    """How many there are in an attempt."""

    of_draws: int = 0


def predicate(trace: Trace, node: torch.fx.Node) -> None:
    """Let the operation draw only where all open regions are taken, if it draws from torch's own generator of a CPU."""
    facts, is_dropout = facts_of(node), node.op == "call_function" and node.target in _DROPOUT
    draws = facts.draws and facts.writes is not None and not facts.communicates and is_of_torch(node)
    if not (draws or is_dropout) or not _is_plain(node):
        return
    if trace.compilation.is_saved or trace.is_in_a_body or not conditions(trace):
        return
    try:
        if is_dropout:
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
    if given.get("training", given.get("train", True)) is not True or type(is_in_place) is not bool:
        return
    if type(probability) not in (float, int) or not 0 < probability <= 1:
        return
    # Eager draws nothing where all elements are dropped; AOTAutograd does.
    drawn = 0.0 if probability == 1 else _drawn(trace, node, noise, (tensor, float(probability)), {})
    node.op, node.target, node.args, node.kwargs = "call_method", "mul_" if is_in_place else "mul", (tensor, drawn), {}


def _drawn(trace: Trace, node: torch.fx.Node, function: Any, args: Any, options: Any) -> torch.fx.Node:
    """What the operator gives that calls the function; raises UnknownCallError where it cannot."""
    count = trace.compilation.of(_Count)
    count.of_draws += 1
    call, tensors, numbers = encoded(function, args, options)
    name = getattr(function, "__name__", function)
    is_like = bool(tensors) and _are_alike(node, tensors[0])
    if (numbers and name == "randint") or (tensors and not is_like and name not in _SHAPED):
        raise UnknownCallError  # it may fail on what it is given, or its shape cannot be told without it
    taken = taken_at(trace, node)
    if taken is None or taken.meta["example_value"].device.type != "cpu":
        raise UnknownCallError
    drawn = add(trace, node, operator(), taken, call, tensors, numbers, is_like, count.of_draws)
    trace.compilation.of(Regions).predicated.add(drawn)
    return drawn


def _are_alike(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    (one,), (like,) = fakes_of(node), fakes_of(other)
    has_same_form = same_sizes(one.shape, like.shape) is True and same_sizes(one.stride(), like.stride()) is True
    return has_same_form and one.dtype is like.dtype
