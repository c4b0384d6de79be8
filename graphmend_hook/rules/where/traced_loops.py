"""What a ``while`` on data becomes while tracing: `torch.while_loop`, where that is what the program does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.attempt import Feature
from ...engine.attempt.compilation import Compilation, is_break_or_failure
from ...engine.attempt.refusals import record
from ...engine.door.question import in_trace, question
from ...engine.door.trace_state import State
from ...engine.door.tracer import SourceLine, Trace
from ...engine.door.variables import Variable, fake_of, is_plain_tensor, is_unread, python_of, tensor_node, tuple_of
from ...engine.facts.operations import name_of
from ...engine.facts.writes import fakes_of, has_plain_memory, memory_of
from ...engine.numbers import late_numbers
from ...engine.numbers.captured_tensors import call
from ...engine.region import Regions
from ..shared.traced_selection import expect_unwritten
from ..shared.traced_sides import is_harmful
from .codes import LOOP_LEFT

LOOP = Feature("a loop that data ends is one operation")  # by its line
_STEPS = 1 << 31  # more than there will be


@dataclass
class _Loops:
    """The loops of an attempt: the line of the one that is being traced; of the last one, what went round first.

    counts: the places of the whole numbers among that; state: what the traced code could tell before it.
    """

    open: SourceLine | None = None
    given: list[torch.fx.Node] = field(default_factory=list)
    counts: set[int] = field(default_factory=set)
    state: State | None = None


def loop(goes: Callable[..., Any], step: Callable[..., Any], carried: tuple[Any, ...], counts: tuple[int, ...]) -> Any:
    """What has become of the names when the loop has ended; None where the loop is traced as it was written.

    goes, step: the test, and the body, as functions of the names that go round; counts: the places of those that have
        to be whole numbers.
    """
    given = _begin(carried, counts) if in_trace() else None
    return None if given is None else _end(torch.while_loop(goes, step, given))


def copied(value: Any) -> Any:
    """A copy of a tensor that goes round under two names."""
    return value.clone() if isinstance(value, torch.Tensor) else value


@question(otherwise=None)
def _begin(trace: Trace, carried: Variable, counts: Variable) -> Any:
    """What goes round, as tensors; None where it cannot."""
    compilation = trace.compilation
    lost = compilation.dropped(LOOP, trace.line)
    items = [each.realize() if is_unread(each) else each for each in carried.items]
    numbers = {place for place, each in enumerate(items) if not each.is_tensor()}
    is_elsewhere = trace.is_in_a_body or compilation.is_saved or compilation.of(Regions).open or is_harmful(trace)
    may_count = not numbers or late_numbers.may_wait_here(trace)
    if lost is None and not is_elsewhere and may_count and numbers.issuperset(python_of(counts)):
        given = [_tensor(trace, each) for each in items]
        nodes = [tensor_node(each) for each in given if each is not None]
        if len(nodes) == len(given) == sum(len(memory_of([node])) for node in nodes) == len(memory_of(nodes)):
            loops = compilation.of(_Loops)
            loops.open, loops.given, loops.counts, loops.state = trace.line, nodes, numbers, State(trace)
            compilation.at_end(_judge_end)
            return tuple_of(given)
    record(LOOP_LEFT)
    return None


def _tensor(trace: Trace, value: Variable) -> Variable:
    """A tensor as it is, and a whole number that counts as one; None for anything else."""
    if value.is_python_constant() and type(value.as_python_constant()) is int:
        number = value.as_python_constant()
        return call(trace, torch.full, (), number, dtype=torch.int64) if abs(number) < _STEPS else None
    if not is_plain_tensor(value) or not has_plain_memory(fake_of(value)):
        return None
    return None if torch.is_grad_enabled() and fake_of(value).requires_grad else value


@question(otherwise=None)
def _end(trace: Trace, results: Variable) -> Any:
    """The results, with whole numbers as such; what went in and what comes out is written to by nobody later."""
    loops = trace.compilation.of(_Loops)
    made = next(node for node in reversed(trace.graph.nodes) if node.target is torch.ops.higher_order.while_loop)
    if torch.is_grad_enabled() and any(fake.requires_grad for each in made.all_input_nodes for fake in fakes_of(each)):
        _give_up(trace.compilation)
    if loops.state is None or State(trace).changed_since(loops.state):
        _give_up(trace.compilation)  # it would have changed once, and not in each step
    found = []
    for place, (given, result) in enumerate(zip(loops.given, results.items, strict=True)):
        is_count = place in loops.counts
        if is_count and not all(_only_counts(body, place) for body in _bodies(trace, made)):
            _give_up(trace.compilation)
        if not is_count:
            expect_unwritten(trace, (given,), tensor_node(result))
        found.append(late_numbers.late_of(trace, result) if is_count else result)
    loops.open = None
    return tuple_of(found)


def _bodies(trace: Trace, loop: torch.fx.Node) -> list[torch.fx.Graph]:
    """The graphs of the test and of the body."""
    named = [each for each in loop.all_input_nodes if each.op == "get_attr"]
    found = [trace.output.nn_modules.get(each.target) for each in named]
    return [each.graph for each in found if isinstance(each, torch.fx.GraphModule)]


def _only_counts(body: torch.fx.Graph, place: int) -> bool:
    """Is what goes round at that place only compared, and added to, with whole numbers that are known?"""
    waiting, seen = [[*body.find_nodes(op="placeholder")][place]], set[torch.fx.Node]()
    while waiting:
        node = waiting.pop()
        for user in node.users.keys() - seen:
            seen.add(user)
            if user.op == "output":
                continue
            others = [each for each in user.args if each is not node]
            is_known = len(user.args) == 2 and all(type(each) is int and abs(each) < _STEPS for each in others)
            if not is_known or name_of(user).rstrip("_") not in ("add", "sub", "lt", "le", "gt", "ge", "eq", "ne"):
                return False
            waiting += [user] if name_of(user).rstrip("_") in ("add", "sub") else []
    return True


def _give_up(compilation: Compilation) -> None:
    line = compilation.of(_Loops).open
    compilation.without(LOOP.at(line), reason="a loop that data ends cannot be one operation")


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a loop, by a graph break or an error?"""
    if compilation.of(_Loops).open is not None and is_break_or_failure(error):
        _give_up(compilation)
