"""Undefined gradients: eager leaves `grad` as it is for a tensor that only what it has skipped would use.

A graph holds every step of a loop and both sides of a branch, also what eager skips, and its backward pass gives zeros
to the weights there.  Eager leaves their `grad` alone, and an optimizer tells the difference.  So the graph hands out
the conditions of its steps too, and each tensor that only steps use is given to it behind a gate: a function of
autograd that hands the gradient on if one of the steps was taken, and nothing at all if none was.  A result that gets
its gradient from steps alone is detached if none of them was taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from ..attempt.attempt import Bet
from ..attempt.compilation import Compilation
from ..door.tracer import log
from ..door.variables import without_hooks
from ..epilogue.rerun import keep, let_run_again
from ..facts.object_identity import asks_for_gradients, watch_gradients
from ..facts.operations import fake_arguments
from ..facts.writes import example_of, fakes_of, memory_of, storages_of, written_by
from ..predicates import read
from ..shelter import Shelters
from .order import Change, Compiler, Verdict, Wrapper

# Ways by which a gradient comes: each by the conditions of the steps that it goes through, which all have to hold.
Ways = frozenset[frozenset[torch.fx.Node]]
Positions = dict[Ways, list[int]]  # of inputs or outputs
Placed = list[tuple[list[int], list[list[int]]]]  # the same, with the positions of the conditions among themselves
_ALWAYS: Ways = frozenset({frozenset()})
_MOST_WAYS = 64
T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """What eager skips where an index has no rows, or where a predicate does not hold.

    nodes: its operations but the last, `adding`, which adds `source` to a result at the index, or selects it.
    condition: the index, or the predicate, a tensor () of bool.
    """

    nodes: frozenset[torch.fx.Node]
    adding: torch.fx.Node
    condition: torch.fx.Node
    source: torch.fx.Node

    @property
    def selects(self) -> bool:
        """Is it a side of a branch, what is selected from?"""
        return self.adding.target is torch.where


@dataclass
class Steps:
    """The steps of an attempt that give gradients.

    bets: on each step, those that are lost if its gradients cannot be told apart; selected: by branches, of any kind.
    """

    bets: dict[Step, tuple[Bet, ...]] = field(default_factory=dict)
    selected: set[torch.fx.Node] = field(default_factory=set)


@dataclass
class _Found:
    """What steps alone use, or give, by the conditions of the steps.  gates: positions of inputs; detached: of outputs.

    count: of the outputs that the program has.
    unsheltered: shelters that are not needed, since what they shelter has a gate for the one side that uses it.
    """

    gates: Positions = field(default_factory=dict)
    detached: Positions = field(default_factory=dict)
    count: int = 0
    unsheltered: list[torch.fx.Node] = field(default_factory=list)

    @property
    def conditions(self) -> list[torch.fx.Node]:
        """Those of all steps."""
        ways = (way for through in (*self.gates, *self.detached) for way in through)
        return [*dict.fromkeys(condition for way in ways for condition in way)]


def leave_undefined(compilation: Compilation, step: Step, *bets: Bet) -> None:
    """Let the gradients of what the step alone uses be undefined where it is skipped; else these bets are lost."""
    compilation.of(Steps).bets[step] = bets
    watch_gradients(compilation)
    keep(compilation)  # it runs as it was written where what has a gate has hooks by then
    compilation.judge(Verdict.UNDEFINED, _judge)
    compilation.change(Change.CONDITIONS, _give_conditions)
    compilation.wrap_compiler(Wrapper.GATES, _with_gates)


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    if not _keep_absent(compilation, module):
        _lose(compilation)


def _lose(compilation: Compilation) -> None:
    bets = compilation.of(Steps).bets
    compilation.without(*{*itertools.chain(*bets.values())}, reason="gradients could not be told from eager's")


def _keep_absent(compilation: Compilation, module: torch.fx.GraphModule) -> bool:
    """Can it be that nothing gets a gradient from the graph that eager leaves without?  Find where there are gates.

    Nor may anything that the graph gives require a gradient where no step was taken and eager's requires none.
    """
    graph, steps, selected = module.graph, [*compilation.of(Steps).bets], compilation.of(Steps).selected
    known = selected | compilation.of(Shelters).operands.keys()
    if any(_is_used_elsewhere(step, known) for step in steps):
        return False
    if any(map(_has_gradient, graph.find_nodes(op="get_attr"))):
        return False
    inputs, (results,) = [*graph.find_nodes(op="placeholder")], graph.output_node().args
    trained = [*filter(_has_gradient, inputs)]
    origins = _Origins(graph, trained, steps)
    written = origins.of_memory(memory_of(inputs))
    behind = {
        position: origins.of([node])
        for position, node in enumerate(results)
        if isinstance(node, torch.fx.Node) and _has_gradient(node)
    }
    given = written.union(*behind.values())
    idle = {
        step
        for step in steps
        if step.selects and (step.adding not in given or origins.through[step].isdisjoint(trained))
    }
    busy = [step for step in steps if step not in idle]  # what others give reaches nothing, or is not trained
    if not all(step.adding in given and not origins.through[step].isdisjoint(trained) for step in busy):
        return False  # what is behind a step is told apart by another one
    if any(step.adding in written for step in busy):
        return False  # whether an input that is written to requires a gradient from then on is for its rows to say
    ways = _Ways(graph, trained, steps, origins, selected)
    if ways.are_too_many:
        return False
    hidden = set[torch.fx.Node]().union(*(origins.through[step] for step in busy)) - given
    reached = {
        place: ways.reaching([results[end] for end in behind], node)
        for place, node in enumerate(inputs)
        if node in hidden
    }
    if any(len(each) > 1 or not _may_have_a_gate(inputs[place]) for place, each in reached.items()):
        return False  # more than one: by which result a gradient comes is told by nothing
    gates = _by_ways((place, through) for place, each in reached.items() for through in each)
    untrained = [position for position, found in behind.items() if found.isdisjoint(trained)]
    detached = _by_ways(
        (position, fewest(itertools.chain(*(ways.of(results[position], node) for node in trained))))
        for position in untrained
    )
    detached.pop(_ALWAYS, None)
    if detached and asks_for_gradients(compilation):
        return False
    if gates:  # where a hook is registered later
        if not let_run_again(compilation, module, [inputs[place] for places in gates.values() for place in places]):
            return False
        keep(compilation).otherwise.add(_lose)  # where it cannot after all
    placed = compilation.of(_Found)
    placed.gates, placed.detached, placed.count = gates, detached, len(results)
    alone = {inputs[place] for through, places in gates.items() if len(through) == 1 for place in places}
    shelters = compilation.of(Shelters).operands
    placed.unsheltered = [node for node, operand in shelters.items() if operand in alone]
    return True


def _by_ways(found: Iterable[tuple[int, Ways]]) -> Positions:
    positions: Positions = {}
    for place, through in found:
        positions.setdefault(through, []).append(place)
    return positions


class _Ways:
    """By which ways each trained input is given a gradient from a node: through no step, or through some.

    are_too_many: or they are not known, since a branch that is no step has one side with other ways than the other.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        trained: Iterable[torch.fx.Node],
        steps: Sequence[Step],
        origins: _Origins,
        selected: set[torch.fx.Node],
    ) -> None:
        self._found: dict[torch.fx.Node, dict[torch.fx.Node, Ways]] = {node: {node: _ALWAYS} for node in trained}
        self._memory: dict[int, dict[torch.fx.Node, Ways]] = {}
        self.are_too_many = False
        ending: dict[torch.fx.Node, dict[torch.fx.Node, list[torch.fx.Node]]] = {}
        for step in steps:
            ending.setdefault(step.adding, {}).setdefault(step.source, []).append(step.condition)
        for node in graph.nodes:
            if node.op.startswith("call") and node not in origins.made_without and _has_gradient(node):
                found = self._through(node, ending.get(node, {}))
                if node in selected and node not in ending:
                    _, left, right = map(self._all, node.all_input_nodes)
                    self.are_too_many |= left != right
                self._found[node] = found
                for memory in written_by(node):
                    self._memory[memory] = _joined([self._memory.get(memory, {}), found])

    def of(self, node: torch.fx.Node, trained: torch.fx.Node) -> Ways:
        """Those by which `trained` is given one from the node."""
        return self._all(node).get(trained, frozenset())

    def reaching(self, ends: Iterable[torch.fx.Node], trained: torch.fx.Node) -> set[Ways]:
        """Those by which `trained` is given one from some of the ends, as sets of ways."""
        return {self.of(end, trained) for end in ends} - {frozenset()}

    def _all(self, node: torch.fx.Node) -> dict[torch.fx.Node, Ways]:
        written = [self._memory[memory] for memory in storages_of(node) if memory in self._memory]
        return _joined([self._found.get(node, {}), *written])

    def _through(
        self, node: torch.fx.Node, conditions: dict[torch.fx.Node, list[torch.fx.Node]]
    ) -> dict[torch.fx.Node, Ways]:
        operands = {operand: self._all(operand) for operand in node.all_input_nodes}
        parts = [ways for operand, ways in operands.items() if operand not in conditions]
        if node.target is torch.where and len(conditions) == 2:  # what both sides have goes through neither
            left, right = (operands[operand] for operand in conditions)
            both = {one: ways & right.get(one, frozenset()) for one, ways in left.items()}
            parts.append(both)
        else:
            both = {}
        for operand, through in conditions.items():
            for one, ways in operands[operand].items():
                alone = ways - both.get(one, frozenset())
                parts += [{one: frozenset(way | {condition} for way in alone)} for condition in through]
        joined = _joined(parts)
        self.are_too_many |= any(len(each) > _MOST_WAYS for each in joined.values())
        return joined if not self.are_too_many else {}


def _joined(parts: Sequence[dict[torch.fx.Node, Ways]]) -> dict[torch.fx.Node, Ways]:
    given = {one for part in parts for one in part}
    return {one: fewest(itertools.chain(*(part.get(one, ()) for part in parts))) for one in given}


def fewest(ways: Iterable[frozenset[T]]) -> frozenset[frozenset[T]]:
    """Without those that another one is a part of."""
    found = {*ways}
    return frozenset(way for way in found if not any(other < way for other in found))


def _is_used_elsewhere(step: Step, known: set[torch.fx.Node]) -> bool:
    """Does a gradient leave the step by another way than its last operation?

    known: what leads out of sides: what is selected of them, and shelters, which a region around them has put in.
    """
    ends = known if step.selects else {step.adding}
    computed = [node for node in step.nodes if node.op.startswith("call") and _has_gradient(node)]
    users = {user for node in computed for user in node.users if _has_gradient(user) or written_by(user)}
    return any(user not in step.nodes and user not in ends for user in users)


class _Origins:
    """The trained inputs, and the steps, by whose gradients a node has its own; a step hides those of its source.

    What both sides of a branch have is not hidden, and no step in one is.  through: those that each step hides.
    made_without: what steps add to, where that requires no gradient.
    """

    def __init__(self, graph: torch.fx.Graph, trained: Iterable[torch.fx.Node], steps: Sequence[Step]) -> None:
        self._nodes = {node: {node} for node in trained}
        self._memory: dict[int, set[torch.fx.Node]] = {}
        self.through: dict[Step, set[torch.fx.Node]] = {}
        added: dict[torch.fx.Node, list[Step]] = {}
        for step in steps:
            added.setdefault(step.adding, []).append(step)
        adding = [step for step in steps if not step.selects]
        self.made_without = {node for step in adding if _is_made_without(node := step.adding.args[0])}
        for node in graph.nodes:
            if not node.op.startswith("call") or node in self.made_without or not _has_gradient(node):
                continue
            ending = added.get(node, [])
            if ending and ending[0].selects:
                _, left, right = (self.of([operand]) for operand in node.all_input_nodes)
                found = (left & right) | {origin for origin in left | right if origin not in trained}
            else:
                sources = [step.source for step in ending]
                found = self.of(operand for operand in node.all_input_nodes if operand not in sources)
            for step in ending:
                self.through[step] = self.of([step.source]) - (found if step.selects else set())
                found.add(node)
            if found:
                self._nodes[node] = found
                for memory in written_by(node):
                    self._memory[memory] = self._memory.get(memory, set()) | found

    def of(self, nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
        """Those of any of the nodes, as far as the graph has been looked at."""
        found: set[torch.fx.Node] = set()
        for node in nodes:
            found |= self._nodes.get(node, set()) | self.of_memory(storages_of(node))
        return found

    def of_memory(self, memories: Iterable[int]) -> set[torch.fx.Node]:
        """Those of what has been written to such memory."""
        return {node for memory in memories for node in self._memory.get(memory, ())}


def _is_made_without(node: torch.fx.Node) -> bool:
    """Does the operation give what requires no gradient?  Its fake tensor tells how it is when steps have added."""
    if not node.op.startswith("call"):
        return False
    try:
        args, options = fake_arguments(node)
        call = node.target if callable(node.target) else getattr(torch.Tensor, node.target)
        with without_hooks():
            return not bool(call(*args, **options).requires_grad)
    except Exception as error:
        log.debug("not known whether %s has a gradient: %s", node, error)
        return False


def _has_gradient(node: torch.fx.Node) -> bool:
    """Does it stand for a tensor that requires a gradient?  So may what is not known."""
    if "example_value" not in node.meta:
        return bool(node.op.startswith("call"))
    return any(bool(fake.requires_grad) for fake in fakes_of(node))


def _may_have_a_gate(node: torch.fx.Node) -> bool:
    """Is it a plain leaf without hooks?

    If it is no leaf, the operation that made it may turn an undefined gradient into zeros.
    """
    tensor: Any = example_of(node) if node.meta.get("grapharg") is not None else None
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return is_plain and bool(tensor.is_leaf) and not has_hooks(tensor)


def has_hooks(tensor: torch.Tensor) -> bool:
    """Has it hooks, which are told of its gradient?"""
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


class HooksError(RuntimeError):
    """A tensor with a gate has hooks by now: its frame is run as it was written, and then compiled so."""


def _give_conditions(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let the graph hand out the conditions of the steps, too; and take away what gates make needless."""
    for shelter in compilation.of(_Found).unsheltered:
        shelter.replace_all_uses_with(shelter.all_input_nodes[1])
        module.graph.erase_node(shelter)
    output = module.graph.output_node()
    (results,) = output.args
    assert isinstance(results, (tuple, list))
    output.args = ((*results, *compilation.of(_Found).conditions),)


def _with_gates(compilation: Compilation, _module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    found = compilation.of(_Found)
    conditions = found.conditions
    gates, detached = (
        [
            (places, [[conditions.index(condition) for condition in way] for way in through])
            for through, places in positions.items()
        ]
        for positions in (found.gates, found.detached)
    )

    def compile_with_gates(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        return _gated(compiler(*args, **kwargs), gates, detached, found.count)

    return compile_with_gates if conditions else compiler


def _gated(graph: Callable[..., Any], gates: Placed, detached: Placed, count: int) -> Callable[..., Any]:
    """`graph`, called with gates before its inputs.

    gates: positions of inputs, and those of the conditions of their steps behind the first `count` outputs.
    detached: the same of outputs, which require a gradient only if one of their steps was taken.
    """

    places = [place for positions, _ in gates for place in positions]
    through = [conditions for positions, conditions in gates for _ in positions]

    def call(*inputs: Any) -> Any:
        given, taken = [*inputs], list[bool]()
        if any(has_hooks(inputs[place]) for place in places):
            raise HooksError("graphmend_hook: a parameter that may be left without a gradient has hooks by now")
        if places:
            gated = _Gate.apply(taken, through, *[inputs[place] for place in places])
            for place, tensor in zip(places, gated, strict=True):
                given[place] = tensor
        found = graph(*given)
        results = [*found[:count]]
        taken += _read(found[count:])
        for positions, conditions in detached:
            if not _is_open(taken, conditions):
                for position in positions:
                    results[position] = results[position].detach()
        return results

    return call


def _is_open(taken: list[bool], ways: list[list[int]]) -> bool:
    """Does a gradient come by one of the ways, as far as the steps were taken?"""
    return any(all(taken[step] for step in way) for way in ways)


def _read(conditions: Sequence[torch.Tensor]) -> list[bool]:
    """Was each step taken?"""
    held = iter(read([condition for condition in conditions if condition.dim() == 0]))
    return [next(held) if condition.dim() == 0 else condition.shape[0] > 0 for condition in conditions]


class _Gate(torch.autograd.Function):  # type: ignore[misc]
    """Hands tensors on, and the gradient of each if a step was taken that uses it.

    taken: of all steps, known by the time that gradients come; through: the ways through steps to each tensor.
    """

    @staticmethod
    def forward(ctx: Any, taken: list[bool], through: list[list[list[int]]], *tensors: Any) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.taken, ctx.through = taken, through
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        pairs = zip(gradients, ctx.through, strict=True)
        handed_on = (gradient if _is_open(ctx.taken, ways) else None for gradient, ways in pairs)
        return (None, None, *handed_on)
