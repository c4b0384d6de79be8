"""Steps of a loop that do nothing where an index is empty: what [Sweep] calls to trace them without asking.

The size of the index is a symbol of the graph.  Between `sweep` and `swept` the trace may only make operations that
cannot fail on no rows, and add to other tensors what stands at that index; anything else, a graph break among it, and
the frame is traced anew with the test as it was written.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from ...engine.attempt.attempt import STATEMENT
from ...engine.attempt.compilation import Compilation
from ...engine.attempt.refusals import record
from ...engine.attempt.restart import expect_success_of
from ...engine.door.question import in_trace, question
from ...engine.door.trace_state import State
from ...engine.door.tracer import SourceLine, Trace, log
from ...engine.door.variables import Variable, is_known, is_plain_tensor, is_unbacked, tensor_node
from ...engine.facts.operations import is_total
from ...engine.facts.writes import fakes_of, memory_of, memory_of_fake, memory_of_inputs, written_by
from ...engine.graph_end.order import Verdict
from ...engine.graph_end.undefined_gradients import Step, leave_undefined
from ...engine.numbers.captured import is_uncaptured
from ..shared.traced_operations import is_tensor
from ..shared.traced_sides import is_harmful
from ..value.traced_data_shapes import nonzero
from .codes import GRADIENTS_UNKNOWN, STEP_DOES_MORE, TOO_MANY_STEPS

_MOST = 64  # steps of one trace


@dataclass(frozen=True)
class _OpenStep:
    """A step that has begun: its line, its frame, the size of its index, and the nodes and the state before it.

    selected: the rows of a mask that is an index in the step, and the size of the mask.
    """

    line: SourceLine | None
    frame: Any
    size: Any
    before: set[torch.fx.Node]
    state: State
    selected: tuple[torch.fx.Node, Any] | None


def sweep(index: Any) -> bool:
    """Is what follows, up to `swept`, to be traced whether or not the index is empty?"""
    return in_trace() and isinstance(index, torch.Tensor) and _begin(index, index)


def sweep_mask(mask: Any) -> torch.Tensor | None:
    """The rows that a mask selects, where what follows is to be traced whether or not there are any, as by `sweep`."""
    if not is_tensor(mask) or mask.dim() != 1 or mask.dtype is not torch.bool:
        return None
    rows = nonzero(mask, True)
    return rows[0] if rows is not None and in_trace() and _begin(rows[0], mask) else None


def sweep_listed(index: Any) -> None:
    """Begin the step of a place that `candidates` gave, where there may be no hit."""
    if in_trace() and not (isinstance(index, torch.Tensor) and _begin(index, index)):
        _leave_lists()


def swept() -> None:
    """End the step that `sweep` or `sweep_listed` has begun, if one has."""
    if in_trace():
        _end()


def candidates(hits: Any) -> list[int] | None:
    """Every place of `hits`, those without a hit too; None where a loop may only go over those with one."""
    if not in_trace() or not isinstance(hits, torch.Tensor) or hits.dim() != 1:
        return None
    return list(range(hits.shape[0])) if _may_list(hits) else None


def candidate_rows(hits: Any) -> list[torch.Tensor] | None:
    """Every row that ``hits.nonzero()`` could have, as `candidates` gives every place: tensors of one number."""
    found = candidates(hits)
    return None if found is None else [torch.tensor([place], device=hits.device) for place in found]


def rows_at(mask: Any, hits: Any, place: Any) -> Any:
    """``torch.where(mask)`` where `hits`, a tensor of bool, is true at the place; no rows where it is false."""
    if not is_tensor(mask):
        return torch.where(mask)
    chosen = (mask != 0) & hits[place]
    found = nonzero(chosen, True)
    return torch.nonzero(chosen, as_tuple=True) if found is None else found


@question(otherwise=False)
def _may_list(trace: Trace, hits: Variable) -> bool:
    size = tensor_node(hits).meta["example_value"].shape[0]
    steps = _room_for(trace, size) if type(size) is int and is_plain_tensor(hits) else None
    if steps is None:
        return False
    expect_success_of(trace.compilation)
    steps.lists.append(trace.line)
    steps.is_listed = size > 0
    return True


@question(otherwise=None)
def _leave_lists(trace: Trace) -> None:
    _trace_without(trace.compilation, [], STEP_DOES_MORE)


@question(otherwise=False)
def _begin(trace: Trace, index: Variable, selecting: Variable) -> bool:
    """Begin a step; selecting: the mask whose rows the index has, or the index itself."""
    rows = tensor_node(index).meta["example_value"]
    steps = _room_for(trace, 1) if is_plain_tensor(index) and rows.dim() == 1 and is_unbacked(rows.shape[0]) else None
    if steps is None:
        return False
    steps.count += 1
    steps.is_listed = False
    mask = tensor_node(selecting).meta["example_value"]
    selected = (tensor_node(index), mask.shape[0]) if mask.dtype is torch.bool else None
    before = set(trace.graph.nodes)
    steps.open.append(_OpenStep(trace.line, _outside(trace), rows.shape[0], before, State(trace), selected))
    expect_success_of(trace.compilation)
    return True


@question(otherwise=None)
def _end(trace: Trace) -> None:
    steps = trace.compilation.of(_Steps)
    if not steps.open or steps.open[-1].frame is not _outside(trace):
        return
    step = steps.open.pop()
    made = [node for node in trace.graph.nodes if node not in step.before]
    code = ""
    if changed := State(trace).changed_since(step.state):
        log.debug("in a step of a loop: %s", changed)
        code = STEP_DOES_MORE
    for node in made:
        code = code or _refusal(node, step)
    adding = [node for node in made if _written_at(node, step)]
    computed = [node for node in made if node not in adding]
    if torch.is_grad_enabled() and any(fake.requires_grad for node in computed for fake in fakes_of(node)):
        if len(adding) == 1 and not trace.compilation.is_saved:
            bets = [STATEMENT.at(line, GRADIENTS_UNKNOWN) for line in (step.line, *steps.lists)]
            found = Step(frozenset(computed), adding[0], *_written_at(adding[0], step))
            leave_undefined(trace.compilation, found, *bets)
        else:
            code = code or GRADIENTS_UNKNOWN
    if code:
        _trace_without(trace.compilation, [step.line], code)


def _refusal(node: torch.fx.Node, step: _OpenStep) -> str:
    """The code of the refusal if the operation cannot be made for no rows, else ""."""
    if not node.op.startswith("call"):
        return ""
    if _fits(node, step) and (_written_at(node, step) or is_total(node) or _updates_its_own(node, step)):
        return ""
    log.debug("not in a step that may be empty: %s", node.format_node())
    return STEP_DOES_MORE


def _fits(node: torch.fx.Node, step: _OpenStep) -> bool:
    """Has what a mask selects from as many rows as the mask, without which eager's index fails?"""
    if step.selected is None or step.selected[0] not in node.all_input_nodes:
        return True
    rows, size = step.selected
    container = node.args[0] if node.target in (operator.getitem, operator.setitem) else None
    shapes = [fake.shape for fake in fakes_of(container)] if isinstance(container, torch.fx.Node) else []
    index = node.args[1] if shapes else None
    first = index[0] if isinstance(index, tuple) else index
    return first is rows and all(len(shape) > 0 and is_known(shape[0] == size) for shape in shapes)


def _updates_its_own(node: torch.fx.Node, step: _OpenStep) -> bool:
    """Is it ``a += b`` of a tensor that the step has made?"""
    return node.target is operator.iadd and written_by(node).isdisjoint(memory_of(step.before))


def _written_at(node: torch.fx.Node, step: _OpenStep) -> tuple[torch.fx.Node, torch.fx.Node] | tuple[()]:
    """The index and the source, if it writes a tensor at as many rows as the step has looked up; else nothing."""
    if node.op == "call_method" and node.target == "index_add_" and len(node.args) == 4 and not node.kwargs:
        _, _, index, source = node.args
    elif node.target is operator.setitem and _assigns_its_own(node):
        _, index, source = node.args
    else:
        return ()
    rows = index.meta["example_value"].numel() if isinstance(index, torch.fx.Node) else None
    is_of_step = isinstance(rows, torch.SymInt) and bool(rows.node.expr == step.size.node.expr)
    return (index, source) if is_of_step and isinstance(source, torch.fx.Node) else ()


def _assigns_its_own(node: torch.fx.Node) -> bool:
    """Is it ``target[index] = source`` of a target that this graph has made, at places, of equal dtypes?"""
    fakes = [[*fakes_of(operand)] if isinstance(operand, torch.fx.Node) else [] for operand in node.args]
    if not all(len(found) == 1 for found in fakes):
        return False
    (target,), (index,), (source,) = fakes
    if index.dtype is not torch.int64 or index.dim() != 1 or target.dtype is not source.dtype:
        return False
    return memory_of_fake(target).isdisjoint(memory_of_inputs(node.graph))


@dataclass
class _Steps:
    """The steps of one attempt to trace a frame.

    open: those that have not ended; count: how many have begun.
    lists: the lines where `candidates` gave every place; is_listed: no step over the last of them has begun yet.
    """

    open: list[_OpenStep] = field(default_factory=list)
    lists: list[SourceLine | None] = field(default_factory=list)
    count: int = 0
    is_listed: bool = False


def _room_for(trace: Trace, count: int) -> _Steps | None:
    """The steps of this attempt, if so many more may be made; else None."""
    compilation = trace.compilation
    if is_harmful(trace) or trace.output.export or is_uncaptured(compilation) or trace.is_in_a_body:
        return None
    steps = compilation.of(_Steps)
    if steps.count + count > _MOST:
        record(TOO_MANY_STEPS)
        return None
    compilation.judge(Verdict.STEPS, _judge)
    return steps


def _judge(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    """Trace anew if the graph ends inside a step, or before one: what follows the break would run for no rows too."""
    steps = compilation.of(_Steps)
    if steps.open or steps.is_listed:
        _trace_without(compilation, [step.line for step in steps.open[-1:]], STEP_DOES_MORE)


def _trace_without(compilation: Compilation, lines: Sequence[SourceLine | None], code: str) -> NoReturn:
    """Trace the frame anew, with the steps at these lines and all lists of hits as they were written."""
    every = [STATEMENT.at(line, code) for line in (*lines, *compilation.of(_Steps).lists)]
    compilation.without(*every, reason="a step of a loop does more than compute")


def _outside(trace: Trace) -> Any:
    """The innermost frame outside this package."""
    return next(trace.frames_outside())
