"""What [Defer] makes of a draw from numpy's generator: it is made after the graph, if nobody looks at the number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import dynamo, retrace
from .effects import append, tracing, unstable_item
from .queue import ITEM
from .tracer import at_trace_time, held, python_of, record, translator
from .writes import is_of_torch, operations


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
    if not _is_known():
        return "GM101-T01"
    if retrace.draws_at_once():
        return "GM101-T13"
    why = dynamo.standing(False, True) or unstable_item(values, 0)
    return why or ("GM101-T12" if retrace.follows_guard() else "")


@at_trace_time(otherwise=False)
def _is_known() -> bool:
    """Is it a method of numpy's global generator?"""
    numpy = sys.modules.get("numpy")
    function = python_of(held("graphmend_target"))
    return numpy is not None and getattr(function, "__self__", None) is numpy.random.mtrand._rand


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
