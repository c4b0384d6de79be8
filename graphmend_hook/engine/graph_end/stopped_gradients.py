"""Stopped gradients: where a side is not taken, none comes to what was computed for it before the branch.

``b = y.exp()``, and a side that alone uses ``b``: in eager no gradient comes to `b` where the side is not taken.  In a
graph the selection hands zeros back to it, and zero times an infinite derivative is NaN.  So an operation to whose
result gradients come through sides alone is given its operands behind a gate, which hands on zeros where none of the
sides is taken.  Their predicates are computed behind the gates: the graph tells them at its end, and a gate asks in the
backward pass.  What is computed in the sides is sheltered (`shelter`).

A backend may compile a graph in parts, as DDP's optimizer does, each with its own backward pass; then a gate is never
told, and the branches are left as they were written.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import has_side_effect
from torch.utils._pytree import tree_flatten, tree_unflatten

from ...source.tensor_ops import operation
from ..attempt.attempt import Bet
from ..attempt.compilation import Compilation
from ..door.variables import is_wrapper
from ..facts.operations import name_of, written_nodes
from ..facts.writes import fakes_of, memory_of, written_by
from ..shelter import Shelters, is_trained
from .order import Change, Compiler, Wrapper
from .undefined_gradients import Steps, fewest

# Ways by which a gradient comes: each by the sides that it goes through, a predicate and where it is taken.
Way = frozenset[tuple[torch.fx.Node, bool]]
Ways = frozenset[Way]
_ALWAYS: Ways = frozenset({frozenset()})
_MOST_WAYS = 16
_UNTOLD = (
    "graphmend_hook: the graph was compiled in parts, and a gate stands in another part than what it is to be told"
)


@dataclass
class _Sides:
    """The sides of branches.

    made: what was computed in them, where their own rules have judged it, by the predicates of its branches.
    bets: those on the branches, by predicate.
    gated: the bets on those branches for which gates stand.
    """

    made: dict[torch.fx.Node, set[torch.fx.Node]] = field(default_factory=dict)
    bets: dict[torch.fx.Node, Bet] = field(default_factory=dict)
    gated: list[Bet] = field(default_factory=list)


def stop_where_not_taken(
    compilation: Compilation, predicate: torch.fx.Node, made: Iterable[torch.fx.Node], bet: Bet
) -> None:
    """Let no gradient come to what only sides of the branch use that are not taken.

    made: what was computed in the sides; bet: is dropped where the branch cannot do without gates, and has none.
    """
    for node in made:
        compilation.of(_Sides).made.setdefault(node, set()).add(predicate)
    compilation.of(_Sides).bets[predicate] = bet
    compilation.change(Change.STOPPED, _stop)
    compilation.wrap_compiler(Wrapper.CACHEABLE, _cacheable)


def without_gates(compilation: Compilation, text: str) -> list[Bet]:
    """What to drop if a backend has failed with that text because a gate of the graph was not told; else []."""
    return compilation.of(_Sides).gated if _UNTOLD in text else []


def _stop(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    sides = compilation.of(_Sides)
    safe = compilation.of(Shelters).safe | sides.made.keys()
    ways_of = _ways(module.graph, compilation.of(Steps).selected)
    # Behind a later branch that takes another value in its place, a side that is taken gets zeros, too.
    late = {node for node, own in sides.made.items() if not _predicates(ways_of.get(node, frozenset())) <= own}
    steep = [
        (node, ways)
        for node, ways in ways_of.items()
        if ways
        and frozenset() not in ways
        and _is_steep(node)
        and node not in safe - late
        and _are_together(node, ways)
    ]
    predicates = set[torch.fx.Node]().union(*(_predicates(ways) for _, ways in steep))
    sides.gated = [bet for predicate, bet in sides.bets.items() if predicate in predicates]
    if sides.gated and _is_parted_by_ddp():
        compilation.without(*sides.gated, reason="DDP's optimizer compiles the graph in parts")
    keys: dict[Ways, int] = {}
    for node, ways in steep:
        _put_gates(node, keys.setdefault(ways, len(keys)), safe if node not in late else set())
    for ways, key in keys.items():
        _tell(module.graph, ways, key)


def _predicates(ways: Ways) -> set[torch.fx.Node]:
    return {predicate for way in ways for predicate, _ in way}


def _is_steep(node: torch.fx.Node) -> bool:
    """Is it an operation of which the derivative may be infinite?"""
    return node.op.startswith("call") and not written_nodes(node) and not operation(name_of(node).rstrip("_")).is_smooth


def _is_parted_by_ddp() -> bool:
    from torch._dynamo.utils import get_optimize_ddp_mode
    from torch.nn.parallel import DistributedDataParallel

    is_on = get_optimize_ddp_mode() == "ddp_optimizer"
    return is_on and DistributedDataParallel._get_active_ddp_module() is not None


def _cacheable(compilation: Compilation, _module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    """Let AOTAutograd keep the graph on disk: what a gate does is decided by the graph and by the version of torch."""
    if not compilation.of(_Sides).gated:
        return compiler

    @functools.wraps(compiler)
    def compile_with_cache(*given: Any, **named: Any) -> Any:
        from torch._inductor import config

        marked = {f"{function.__module__}.{function.__qualname__}": _FORM for function in (gate, tell)}
        with config.patch(unsafe_marked_cacheable_functions={**config.unsafe_marked_cacheable_functions, **marked}):
            return compiler(*given, **named)

    return compile_with_cache


def _ways(graph: torch.fx.Graph, selected: set[torch.fx.Node]) -> dict[torch.fx.Node, Ways]:
    """By which ways a gradient comes to each operation of the graph from what it gives."""
    written = {memory for node in graph.nodes if node.op.startswith("call") for memory in written_by(node)}
    found: dict[torch.fx.Node, Ways] = {}
    for node in reversed(graph.nodes):
        is_written = bool(written) and not memory_of([node]).isdisjoint(written)
        if node.op == "output" or (is_written and is_trained(node)):
            found[node] = _ALWAYS
        elif node not in found or not is_trained(node):
            found[node] = frozenset()
        sides = node.args if node in selected and node.target is torch.where else ()
        for operand in node.all_input_nodes:
            ways = found[node]
            if sides and sides[1] is not sides[2] and operand in sides[1:]:
                predicate, is_where_true = sides[0], operand is sides[1]
                ways = frozenset(
                    way | {(predicate, is_where_true)} for way in ways if (predicate, not is_where_true) not in way
                )
            found[operand] = _joined(found.get(operand, frozenset()) | ways)
    return found


def _joined(ways: Iterable[Way]) -> Ways:
    """What goes through both sides of a branch goes through neither.  All ways where there are too many."""
    found = {*ways}
    if len(found) > _MOST_WAYS:
        return _ALWAYS
    news = found
    while news:
        news = {one & other for one in found for other in found if _are_both_sides(one - other, other - one)} - found
        found |= news
    return fewest(found)


def _are_both_sides(one: Way, other: Way) -> bool:
    return len(one) == 1 and other == {(predicate, not is_where_true) for predicate, is_where_true in one}


def _are_together(node: torch.fx.Node, ways: Ways) -> bool:
    """Are the operation and all predicates on one device, and plain tensors?"""
    predicates = [predicate for way in ways for predicate, _ in way]
    fakes = [fake for each in (node, *node.all_input_nodes, *predicates) for fake in fakes_of(each)]
    return len({fake.device for fake in fakes}) == 1 and not any(map(is_wrapper, fakes))


def _put_gates(node: torch.fx.Node, key: int, safe: set[torch.fx.Node]) -> None:
    leaves, form = tree_flatten((node.args, node.kwargs))
    for place, operand in enumerate(leaves):
        if isinstance(operand, torch.fx.Node) and operand not in safe and is_trained(operand):
            with node.graph.inserting_before(node):
                leaves[place] = node.graph.call_function(gate, (key, operand))
            leaves[place].meta["example_value"] = operand.meta["example_value"]
    node.args, node.kwargs = tree_unflatten(leaves, form)


def _tell(graph: torch.fx.Graph, ways: Ways, key: int) -> None:
    """Tell the gates whether one of the ways is open."""
    with graph.inserting_before(graph.output_node()):

        def call(function: Any, *given: torch.fx.Node) -> torch.fx.Node:
            made = graph.call_function(function, given)
            made.meta["example_value"] = given[0].meta["example_value"]
            return made

        def is_open(way: Way) -> torch.fx.Node:
            conditions = [predicate if taken else call(operator.invert, predicate) for predicate, taken in way]
            return functools.reduce(functools.partial(call, operator.and_), conditions)

        graph.call_function(tell, (key, functools.reduce(functools.partial(call, operator.or_), map(is_open, ways))))


# --- in the graph -----------------------------------------------------------------------------------------------------

_FORM = "1"  # of the functions below; another number where they do something else


class _Answer:
    """Whether a gate is open, a tensor () of bool: known once the graph has told it."""

    is_open: torch.Tensor | None = None


class _Waiting(threading.local):
    """The answers that the run of a graph has not told yet, by the key of the gates."""

    def __init__(self) -> None:
        self.answers: dict[int, _Answer] = {}


_waiting = _Waiting()


def gate(key: int, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, of which the gradient is zeros if the gates of that key are told that no side uses it."""
    answer: _Answer = _waiting.answers.setdefault(key, _Answer())
    gated: torch.Tensor = _Gate.apply(answer, tensor)
    return gated


@has_side_effect  # type: ignore[untyped-decorator]
def tell(key: int, is_open: torch.Tensor) -> None:
    """Tell the gates of that key, which this run has passed, whether they are open."""
    _waiting.answers.pop(key, _Answer()).is_open = is_open


class _Gate(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, answer: _Answer, tensor: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.answer = answer
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[None, torch.Tensor | None]:
        if gradient is None:
            return None, None
        if ctx.answer.is_open is None:
            raise RuntimeError(_UNTOLD)
        return None, gradient.masked_fill(~ctx.answer.is_open, 0)
