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
from typing import Any

import torch

from ..attempt.attempt import Bet
from ..attempt.compilation import Compilation
from ..door.tracer import log
from ..door.variables import without_hooks
from ..epilogue.rerun import keep, may_run_again
from ..facts.object_identity import asks_for_gradients, watch_gradients
from ..facts.operations import fake_arguments
from ..facts.writes import example_of, fakes_of, memory_of, storages_of, written_by
from ..shelter import Shelters
from .order import Change, Compiler, Verdict, Wrapper

Conditions = tuple[torch.fx.Node, ...]  # of steps
Positions = dict[Conditions, list[int]]  # of inputs or outputs
Placed = list[tuple[list[int], list[int]]]  # the same, with the positions of the conditions among themselves


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
        return [*dict.fromkeys(condition for through in (*self.gates, *self.detached) for condition in through)]


def leave_undefined(compilation: Compilation, step: Step, *bets: Bet) -> None:
    """Let the gradients of what the step alone uses be undefined where it is skipped; else these bets are lost."""
    compilation.of(Steps).bets[step] = bets
    watch_gradients(compilation)
    keep(compilation)  # it runs as it was written where what has a gate has hooks by then
    compilation.judge(Verdict.UNDEFINED, _judge)
    compilation.change(Change.CONDITIONS, _give_conditions)
    compilation.wrap_compiler(Wrapper.GATES, _with_gates)


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    bets = compilation.of(Steps).bets
    if not _keep_absent(compilation, module):
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
    steps = [step for step in steps if step not in idle]  # what these give reaches nothing, or is not trained
    if not all(step.adding in given and not origins.through[step].isdisjoint(trained) for step in steps):
        return False  # what is behind a step is told apart by another one
    if any(step.adding in written for step in steps):
        return False  # whether an input that is written to requires a gradient from then on is for its rows to say
    gates: Positions = {}
    for place, node in enumerate(inputs):
        through = [step for step in steps if node in origins.through[step]]
        if through and node not in given:
            reached = {
                condition: frozenset(end for end, found in behind.items() if not added.isdisjoint(found))
                for condition, added in _added_by_condition(through).items()
            }
            if len({*reached.values()}) > 1 or not _may_have_a_gate(node):
                return False  # more than one: by which result a gradient comes is told by nothing
            gates.setdefault(_conditions(through), []).append(place)
    detached: Positions = {}
    for position, found in behind.items():
        if found.isdisjoint(trained):
            detached.setdefault(_conditions(step for step in steps if step.adding in found), []).append(position)
    if detached and asks_for_gradients(compilation):
        return False
    if gates and not may_run_again(compilation, module):
        return False  # as it has to be where a hook is registered later; nor may it write to what has a gate
    placed = compilation.of(_Found)
    placed.gates, placed.detached, placed.count = gates, detached, len(results)
    alone = {inputs[place] for through, places in gates.items() if len(through) == 1 for place in places}
    shelters = compilation.of(Shelters).operands
    placed.unsheltered = [node for node, operand in shelters.items() if operand in alone]
    return True


def _added_by_condition(steps: Iterable[Step]) -> dict[torch.fx.Node, set[torch.fx.Node]]:
    found: dict[torch.fx.Node, set[torch.fx.Node]] = {}
    for step in steps:
        found.setdefault(step.condition, set()).add(step.adding)
    return found


def _conditions(steps: Iterable[Step]) -> Conditions:
    return tuple(dict.fromkeys(step.condition for step in steps))


def _is_used_elsewhere(step: Step, known: set[torch.fx.Node]) -> bool:
    """Does a gradient leave the step by another way than its last operation?

    known: what leads out of sides: what is selected of them, and shelters, which a region around them has put in.
    """
    ends = known if step.selects else {step.adding}
    computed = [node for node in step.nodes if node.op.startswith("call") and _has_gradient(node)]
    return any(user not in step.nodes and user not in ends for node in computed for user in node.users)


class _Origins:
    """The trained inputs, and the steps, by whose gradients a node has its own; a step hides those of its source.

    What both sides of a branch have is not hidden, and no step in one is.  through: those that each step hides.
    """

    def __init__(self, graph: torch.fx.Graph, trained: Iterable[torch.fx.Node], steps: Sequence[Step]) -> None:
        self._nodes = {node: {node} for node in trained}
        self._memory: dict[int, set[torch.fx.Node]] = {}
        self.through: dict[Step, set[torch.fx.Node]] = {}
        added: dict[torch.fx.Node, list[Step]] = {}
        for step in steps:
            added.setdefault(step.adding, []).append(step)
        adding = [step for step in steps if not step.selects]
        made_without = {node for step in adding if _is_made_without(node := step.adding.args[0])}
        for node in graph.nodes:
            if not node.op.startswith("call") or node in made_without or not _has_gradient(node):
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
    return is_plain and bool(tensor.is_leaf) and not _has_hooks(tensor)


def _has_hooks(tensor: torch.Tensor) -> bool:
    """Has it hooks, which would be called with no gradient?"""
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
        [(places, [conditions.index(condition) for condition in through]) for through, places in positions.items()]
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
        if any(_has_hooks(inputs[place]) for place in places):
            raise HooksError("graphmend_hook: a parameter that may be left without a gradient has hooks by now")
        if places:
            gated = _Gate.apply(taken, through, *[inputs[place] for place in places])
            for place, tensor in zip(places, gated, strict=True):
                given[place] = tensor
        found = graph(*given)
        results = [*found[:count]]
        taken += _read(found[count:])
        for positions, conditions in detached:
            if not any(taken[condition] for condition in conditions):
                for position in positions:
                    results[position] = results[position].detach()
        return results

    return call


def _read(conditions: Sequence[torch.Tensor]) -> list[bool]:
    """Was each step taken?  Of predicates all are read at once, from a device by one copy."""
    predicates = [condition for condition in conditions if condition.dim() == 0]
    held = iter(torch.stack(predicates).tolist() if predicates else ())
    return [next(held) if condition.dim() == 0 else condition.shape[0] > 0 for condition in conditions]


class _Gate(torch.autograd.Function):  # type: ignore[misc]
    """Hands tensors on, and the gradient of each if a step was taken that uses it.

    taken: of all steps, known by the time that gradients come; through: the steps that use each tensor.
    """

    @staticmethod
    def forward(ctx: Any, taken: list[bool], through: list[list[int]], *tensors: Any) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.taken, ctx.through = taken, through
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        pairs = zip(gradients, ctx.through, strict=True)
        handed_on = (gradient if any(ctx.taken[step] for step in steps) else None for gradient, steps in pairs)
        return (None, None, *handed_on)
