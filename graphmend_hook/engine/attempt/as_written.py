"""When a frame is traced as it was written: all of it, or the statement at hand."""

from __future__ import annotations

from ..door.tracer import Trace
from . import budget
from .attempt import MENDING, Bet
from .compilation import Compilation


def mending(compilation: Compilation, *, even_one_graph: bool = False) -> Bet | None:
    """The bet to drop for the frame to be traced as it was written; None if it is off, or may not be dropped.

    Under ``fullgraph=True`` a frame as it was written fails: there it may not, unless `even_one_graph`.
    """
    may_drop = even_one_graph or not compilation.one_graph
    return MENDING.at() if may_drop and compilation.allows(MENDING) else None


def is_as_written(trace: Trace) -> bool:
    """Is the statement at hand to be traced as it was written?  What a question asks of its trace."""
    return not trace.compilation.allows(MENDING) or budget.is_spent_at(trace)
