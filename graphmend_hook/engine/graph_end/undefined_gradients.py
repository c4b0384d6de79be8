"""Undefined gradients: eager leaves `grad` as it is for a tensor that only skipped steps of a loop use.

A graph holds every step of a loop, also one that eager skips, and its backward pass gives zeros to the weights of such
a step.  Eager leaves their `grad` alone, and an optimizer tells the difference.  So the graph hands out the indices of
its steps too, and each tensor that only steps use is given to it behind a gate: a function of autograd that hands the
gradient on if one of the steps had rows, and nothing at all if none had.  A result that gets its gradient from steps
alone is detached if none of them had rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..attempt.compilation import Compilation
from ..door.tracer import log
from ..door.variables import without_hooks
from ..epilogue.rerun import may_run_again
from ..facts.object_identity import asks_for_gradients
from ..facts.operations import fake_arguments
from ..facts.writes import example_of, fakes_of, memory_of, storages_of, written_by

Indices = tuple[torch.fx.Node, ...]  # of steps
Positions = Mapping[Indices, list[int]]  # of inputs or outputs
Placed = list[tuple[list[int], list[int]]]  # the same, with the positions of the indices among themselves


@dataclass(frozen=True)
class Step:
    """A step that eager skips where its index is empty.

    nodes: its operations but the last, `adding`, which adds `source` to a result at `index`.
    """

    nodes: frozenset[torch.fx.Node]
    adding: torch.fx.Node
    index: torch.fx.Node
    source: torch.fx.Node


def keep_absent(compilation: Compilation, module: torch.fx.GraphModule, steps: Sequence[Step]) -> bool:
    """See to it that nothing gets a gradient from the graph that eager leaves without; False where that cannot be.

    Nor may anything that the graph gives require a gradient where no step had rows and eager's requires none.
    """
    graph = module.graph
    if any(map(_is_used_elsewhere, steps)) or any(map(_has_gradient, graph.find_nodes(op="get_attr"))):
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
    if not all(step.adding in given and not origins.through[step].isdisjoint(trained) for step in steps):
        return False  # what is behind a step is told apart by another one
    if any(step.adding in written for step in steps):
        return False  # whether an input that is written to requires a gradient from then on is for its rows to say
    gates: dict[Indices, list[int]] = {}
    for place, node in enumerate(inputs):
        through = [step for step in steps if node in origins.through[step]]
        if through and node not in given:
            reached = {frozenset(end for end, found in behind.items() if step.adding in found) for step in through}
            if len(reached) > 1 or not _may_have_a_gate(node):
                return False  # more than one: by which result a gradient comes is told by nothing
            gates.setdefault(_indices(through), []).append(place)
    detached: dict[Indices, list[int]] = {}
    for position, found in behind.items():
        if found.isdisjoint(trained):
            detached.setdefault(_indices(step for step in steps if step.adding in found), []).append(position)
    if detached and asks_for_gradients(compilation):
        return False
    if gates and not may_run_again(compilation, module):
        return False  # as it has to be where a hook is registered later; nor may it write to what has a gate
    if gates or detached:
        _install(compilation, module, gates, detached)
    return True


def _indices(steps: Iterable[Step]) -> Indices:
    return tuple(dict.fromkeys(step.index for step in steps))


def _is_used_elsewhere(step: Step) -> bool:
    """Does a gradient leave the step by another way than its last operation?"""
    computed = [node for node in step.nodes if node.op.startswith("call") and _has_gradient(node)]
    return any(user not in step.nodes and user is not step.adding for node in computed for user in node.users)


class _Origins:
    """The trained inputs, and the steps, by whose gradients a node has its own; a step hides those of its source.

    through: those of the source of each step.
    """

    def __init__(self, graph: torch.fx.Graph, trained: Iterable[torch.fx.Node], steps: Sequence[Step]) -> None:
        self._nodes = {node: {node} for node in trained}
        self._memory: dict[int, set[torch.fx.Node]] = {}
        self.through: dict[Step, set[torch.fx.Node]] = {}
        added = {step.adding: step for step in steps}
        made_without = {node for step in steps if _is_made_without(node := step.adding.args[0])}
        for node in graph.nodes:
            if not node.op.startswith("call") or node in made_without or not _has_gradient(node):
                continue
            step = added.get(node)
            found = self.of(operand for operand in node.all_input_nodes if step is None or operand is not step.source)
            if step is not None:
                self.through[step] = self.of([step.source])
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


def _install(compilation: Compilation, module: torch.fx.GraphModule, gates: Positions, detached: Positions) -> None:
    """Let the graph hand out the indices too, and what a backend makes of it be called with gates.

    gates: positions of inputs, and detached: positions of outputs, by the indices of their steps.
    """
    indices = [*dict.fromkeys(index for through in (*gates, *detached) for index in through)]
    placed = [
        [(places, [indices.index(index) for index in through]) for through, places in positions.items()]
        for positions in (gates, detached)
    ]
    output = module.graph.output_node()
    (results,) = output.args
    assert isinstance(results, (tuple, list))
    output.args = ((*results, *indices),)
    module.recompile()
    compiler, count = compilation.output.call_user_compiler, len(results)

    def compile_with_gates(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        return _gated(compiler(*args, **kwargs), placed[0], placed[1], count)

    compilation.output.call_user_compiler = compile_with_gates


def _gated(graph: Callable[..., Any], gates: Placed, detached: Placed, count: int) -> Callable[..., Any]:
    """`graph`, called with gates before its inputs.

    gates: positions of inputs, and those of the indices of their steps behind the first `count` outputs.
    detached: the same of outputs, which require a gradient only if one of their steps had rows.
    """

    def call(*inputs: Any) -> Any:
        given, opened = [*inputs], []
        for positions, through in gates:
            had_rows: list[bool] = []
            if any(_has_hooks(inputs[position]) for position in positions):
                raise HooksError("graphmend_hook: a parameter that may be left without a gradient has hooks by now")
            gated = _Gate.apply(had_rows, *[inputs[position] for position in positions])
            for position, tensor in zip(positions, gated, strict=True):
                given[position] = tensor
            opened.append((had_rows, through))
        found = graph(*given)
        results, rows = [*found[:count]], [index.shape[0] > 0 for index in found[count:]]
        for had_rows, through in opened:
            had_rows += [rows[place] for place in through]
        for positions, through in detached:
            if not any(rows[place] for place in through):
                for position in positions:
                    results[position] = results[position].detach()
        return results

    return call


class _Gate(torch.autograd.Function):  # type: ignore[misc]
    """Hands tensors on, and their gradients if any of `had_rows` is true by then."""

    @staticmethod
    def forward(ctx: Any, had_rows: list[bool], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.had_rows = had_rows
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        return (None, *(gradients if any(ctx.had_rows) else [None] * len(gradients)))
