"""What [Defer] makes of a draw from numpy's generator: it is made after the graph, if nobody looks at the number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import retrace
from .effects import append, refusal_here, tracing
from .operations import is_of_torch
from .queue import ITEM
from .tracer import at_trace_time, held, python_of, record, translator
from .writes import operations


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


def drawable(graphmend_target: Callable[..., Any], values: tuple[Any, ...]) -> bool:
    """May ``graphmend_target(*values)`` wait for the end of the graph?"""
    if not tracing():
        return False
    why = _refusal(values)
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
        retrace.draw_at_once()
    return drawn.number


def _refusal(values: tuple[Any, ...]) -> str:
    for value in values:
        if type(value) is not int and type(value) is not float:
            return "GM101-T04"
    if not _gives_a_number():
        return "GM101-T01"
    if retrace.draws_at_once():
        return "GM101-T13"
    return refusal_here(False, True, values)


@at_trace_time(otherwise=False)
def _gives_a_number() -> bool:
    """Is it a method of numpy's global generator that gives one number, and does not fail?  Another generator tells."""
    numpy = sys.modules.get("numpy")
    function = python_of(held("graphmend_target"))
    if numpy is None or getattr(function, "__self__", None) is not numpy.random.mtrand._rand:
        return False
    values = [value.as_python_constant() for value in held("values").items]
    return isinstance(getattr(numpy.random.RandomState(0), function.__name__)(*values), int | float)


@at_trace_time(otherwise=None)
def _expect_no_other_draws() -> None:
    """Draw where it is written if the graph has operations of others: they may draw from the same generator."""
    output = translator().output
    if not hasattr(output, "graphmend_drawn"):
        output.graphmend_drawn = True
        output.register_finalizer_fns.append(_look_at)


def _look_at(module: Any) -> None:
    if not all(map(is_of_torch, operations(module))):
        retrace.draw_at_once()
