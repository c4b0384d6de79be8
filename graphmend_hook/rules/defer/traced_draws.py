"""Draws from numpy's generator, which [Defer] makes after the graph where traced code does not look at the number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from ...engine.attempt.attempt import Feature
from ...engine.attempt.compilation import Compilation
from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, fake_of, python_of
from ...engine.epilogue.deferral import tracing
from ...engine.epilogue.queue import ITEM
from ...engine.facts.operations import is_of_torch
from ...engine.facts.writes import operations
from ...engine.graph_end.order import Verdict
from .codes import MAY_CHANGE, NUMBER_LOOKED_AT, UNKNOWN_CALL
from .traced import append, record, refusal_here

_LATE = Feature("numbers are drawn after the graph")


class Drawn:
    """Stands for a number that is drawn after the graph; to compare it, the number is needed."""

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
    """Leave ``function(*values)`` for the epilogue, and give what stands for its number."""
    drawn = Drawn()
    append((ITEM, deliver, drawn, function, *values))
    _expect_no_other_draws()
    return drawn


def deliver(drawn: Drawn, values: tuple[Any, ...]) -> None:
    """Draw the number at last."""
    drawn.number = values[0](*values[1:])


def number_of(drawn: Drawn) -> Any:
    """The number; a trace that comes here before the draw begins anew, with draws made where they stand."""
    if tracing() and not hasattr(drawn, "number"):
        _draw_at_once()
    return drawn.number


def _refusal(target: Callable[..., Any], values: tuple[Any, ...]) -> str:
    for value in values:
        if type(value) is not int and type(value) is not float:
            return MAY_CHANGE
    return _refusal_of_numbers(target, values) or refusal_here(False, True, values, False)


@question(otherwise=UNKNOWN_CALL)
def _refusal_of_numbers(trace: Trace, target: Variable, values: Variable) -> str:
    """The code unless it is a method of numpy's global generator that gives a number, which may be drawn later.

    It is tried on another generator, so that the global one does not move.  A number that is a symbol cannot be tried,
    and what numpy refuses raises where it stands.
    """
    numpy, function, numbers = sys.modules.get("numpy"), python_of(target), fake_of(values)
    if not all(type(number) in (int, float) for number in numbers):
        return UNKNOWN_CALL
    if numpy is None or getattr(function, "__self__", None) is not numpy.random.mtrand._rand:
        return UNKNOWN_CALL
    try:
        drawn = getattr(numpy.random.RandomState(0), function.__name__)(*numbers)
    except (TypeError, ValueError):
        return UNKNOWN_CALL
    if not isinstance(drawn, int | float):
        return UNKNOWN_CALL
    return "" if trace.compilation.allows(_LATE) else NUMBER_LOOKED_AT


@question(otherwise=None)
def _expect_no_other_draws(trace: Trace) -> None:
    """Trace anew if the graph has operations of other libraries, which may draw from the same generator before us."""
    trace.compilation.judge(Verdict.DRAWS, _judge)


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    if not all(map(is_of_torch, operations(module))):
        compilation.without(_LATE.at(), reason="a number is drawn")


@question(otherwise=None)
def _draw_at_once(trace: Trace) -> None:
    trace.compilation.without(_LATE.at(), reason="a number is drawn")
