"""Clocks that traced code reads: a graph has one time before it, and one behind it.

``start = time.perf_counter()`` where the graph has no operation yet is read before it, as a number that Python draws
(`drawn_numbers`).  Where it has, the clock is read once behind the graph, and what is computed of the two is the time
that the graph took.  Where the program reads a clock between its operations once more, as for the time of each layer,
all but the first are read as they were written: a graph has no moments inside of it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ...source.draws import CLOCKS
from ..door.tracer import SourceLine, Trace
from ..door.variables import Variable, python_of
from . import drawn_numbers, late_numbers

_CLOCKS = frozenset(getattr(time, name.rpartition(".")[2]) for name in CLOCKS)


@dataclass
class _Readings:
    """Those of an attempt.

    before: what each clock shows before the graph, a tensor () of the graph.
    behind: how many operations the graph has where a clock is read behind it.
    lines: of the program, with such readings.
    """

    before: dict[Callable[[], float], Variable] = field(default_factory=dict)
    behind: int = 0
    lines: set[SourceLine | None] = field(default_factory=set)


def is_clock(function: Variable) -> bool:
    """Is it one of Python's own clocks, which a program may have replaced?"""
    return any(python_of(function) is clock for clock in _CLOCKS)


def reading(trace: Trace, function: Variable) -> Variable:
    """What the clock shows at the statement at hand, as a number that exists behind the graph; None where none may."""
    if not late_numbers.may_wait_here(trace):
        return None
    clock: Callable[[], float] = python_of(function)
    readings = trace.compilation.of(_Readings)
    operations = sum(node.op.startswith("call") for node in trace.graph.nodes)
    if clock not in readings.before:
        readings.before[clock] = drawn_numbers.input_of(trace, clock, ((), {}), type(clock()))
    number = late_numbers.late_of(trace, readings.before[clock])
    if not operations:
        return number
    readings.lines.add(trace.line)
    readings.behind = readings.behind or operations
    if operations != readings.behind:
        late_numbers.without(trace.compilation, readings.lines, "a clock is read between operations of the graph")
    return late_numbers.kind_of_variable()(_behind(clock), number.operands, number.kind, number.lines)


class _Behind:
    """Reads a clock once behind each run of a graph, of which it is given the reading before."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._last = clock, threading.local()

    def __call__(self, before: torch.Tensor) -> float:
        run = (before, before.item())
        last = getattr(self._last, "run", (None, 0))
        if last[0] is not before or last[1] != run[1]:
            self._last.run, self._last.shown = run, self._clock()
        shown: float = self._last.shown
        return shown


_behind = functools.cache(_Behind)
