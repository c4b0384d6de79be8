"""What [Defer] makes of a draw from numpy's generator: it is made after the graph, if nobody looks at the number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dynamo.compilation import Compilation
from ...dynamo.operations import is_of_torch
from ...dynamo.place import tracing
from ...dynamo.question import question
from ...dynamo.queue import ITEM
from ...dynamo.restart import trace_anew
from ...dynamo.trace import Trace
from ...dynamo.variables import Variable, python_of
from ...dynamo.writes import operations
from .traced_defer import append, record, refusal_here

CALLED = ("drawable", "draw")  # by rewritten code


@dataclass
class DrawOrders:
    """What further attempts do.  at_once: numbers are drawn where it is written."""

    at_once: bool = False


class Drawn:
    """Stands for a number that is drawn after the graph, or has been by then; it can be compared."""

    number: Any

    def __lt__(self, other: Any) -> Any:
        return number_of(self) < other

    def __le__(self, other: Any) -> Any:
        return number_of(self) <= other

    def __gt__(self, other: Any) -> Any:
        return number_of(self) > other

    def __ge__(self, other: Any) -> Any:
        return number_of(self) >= other


def drawable(target: Callable[..., Any], values: tuple[Any, ...]) -> bool:
    """May ``target(*values)`` wait for the end of the graph?"""
    if not tracing():
        return False
    why = _refusal(target, values)
    if why:
        record(why)
    return not why


def draw(function: Callable[..., Any], values: tuple[Any, ...]) -> Drawn:
    """What stands for ``function(*values)``, which is left for the epilogue."""
    drawn = Drawn()
    append((ITEM, deliver, drawn, function, *values))
    _expect_no_other_draws()
    return drawn


def deliver(drawn: Drawn, values: tuple[Any, ...]) -> None:
    """Draw the number at last."""
    drawn.number = values[0](*values[1:])


def number_of(drawn: Drawn) -> Any:
    """The number; while it is not drawn, the trace cannot go on without it."""
    if tracing() and not hasattr(drawn, "number"):
        _draw_at_once()
    return drawn.number


def _refusal(target: Callable[..., Any], values: tuple[Any, ...]) -> str:
    for value in values:
        if type(value) is not int and type(value) is not float:
            return "GM101-T04"
    if not _gives_a_number(target, values):
        return "GM101-T01"
    if _draws_at_once():
        return "GM101-T13"
    return refusal_here(False, True, values)


@question(otherwise=False)
def _gives_a_number(_trace: Trace, target: Variable, values: tuple[Any, ...]) -> bool:
    """Is it a method of numpy's global generator that gives one number, and does not fail?  Another generator tells."""
    numpy = sys.modules.get("numpy")
    function = python_of(target)
    if numpy is None or getattr(function, "__self__", None) is not numpy.random.mtrand._rand:
        return False
    return isinstance(getattr(numpy.random.RandomState(0), function.__name__)(*values), int | float)


@question(otherwise=None)
def _expect_no_other_draws(trace: Trace) -> None:
    """Draw where it is written if the graph has operations of others: they may draw from the same generator."""
    compilation = trace.compilation

    def judge(module: Any) -> None:
        if not all(map(is_of_torch, operations(module))):
            _order(compilation)

    compilation.judge(judge)


@question(otherwise=None)
def _draw_at_once(trace: Trace) -> None:
    """Trace the frame anew, with numbers drawn where they are written."""
    _order(trace.compilation)


def _order(compilation: Compilation) -> None:
    orders = compilation.attempts.of(DrawOrders)
    if not orders.at_once:
        orders.at_once = True
        trace_anew("a number is drawn")


@question(otherwise=True)
def _draws_at_once(trace: Trace) -> bool:
    """Is every number in this compilation to be drawn where it is written?"""
    return trace.compilation.attempts.of(DrawOrders).at_once
