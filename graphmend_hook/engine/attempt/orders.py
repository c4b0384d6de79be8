"""The order to trace a frame as it was written, for all further attempts."""

from __future__ import annotations

from dataclasses import dataclass

from ..door.tracer import Trace
from . import budget
from .compilation import Compilation, trace_anew


@dataclass
class Orders:
    """What holds for all further attempts.  as_written: every statement is traced as it was written."""

    as_written: bool = False


def trace_as_written(compilation: Compilation, reason: str, *, even_one_graph: bool = False) -> None:
    """Trace the frame anew as it was written, unless that has been done, or ``fullgraph=True`` leaves no other way.

    even_one_graph: under ``fullgraph=True`` too, which then fails.
    """
    orders = compilation.attempts.of(Orders)
    if not orders.as_written and (even_one_graph or not compilation.one_graph):
        orders.as_written = True
        trace_anew(reason)


def is_as_written(trace: Trace) -> bool:
    """Is the statement at hand to be traced as it was written?  What a question asks of its trace."""
    return trace.compilation.attempts.of(Orders).as_written or budget.is_spent_at(trace)
