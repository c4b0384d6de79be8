"""Giving up on a trace: Dynamo forgets what it has traced of the frame, and traces it anew as it was written.

So a frame that cannot do without its breaks is compiled as it is without the hook.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from torch._guards import CompileContext

from .endings import at_end
from .handlers import is_caught, is_in_finally
from .tracer import at_trace_time, log, translator

# How PyTorch says that something depends on what cannot be known, and how it spells a number that the data decides.
_DECIDING = re.compile(r"data-dependent expression (.+?) \(unhinted")
_UNBACKED = re.compile(r"\bu\d+\b")


@at_trace_time(otherwise=None)
def expect_success() -> None:
    """Abandon the compilation if it fails, now that something in it has been mended.

    An operation that fails on the shapes at hand ends it: the effects before it would be lost, and its error would win
    over a guard before it.  A backend may not lower what a break had kept apart.  Where Dynamo gives the whole frame
    up, a break leaves it the part before.  Under ``fullgraph=True`` there is nothing to fall back to.
    """
    output = translator().output
    output.graphmend_one_graph = output.root_tx.one_graph  # who is no more when it ends
    at_end(output, _judge)


@at_trace_time(otherwise=None)
def expect_failure(is_guard: bool) -> None:
    """Run the frame again if its graph fails: what eager would have done by then is not done yet, such as a guard."""
    from ..epilogue import rerun

    output = translator().output
    if is_guard:
        output.graphmend_guarded = True
    rerun.keep(output)


def _judge(output: Any, error: BaseException | None) -> None:
    from torch._dynamo.exc import RestartAnalysis, SkipFrame, Unsupported

    one_graph, captured = output.graphmend_one_graph, hasattr(output, "graphmend_captured")
    if isinstance(error, RestartAnalysis):
        if captured and _DECIDING.search(str(error.restart_reason)):
            _capture_less(output, "a decision depends on a number that was captured", str(error.restart_reason))
        return
    breaks_here = isinstance(error, Unsupported) and not getattr(error, "skip_frame", False)
    if isinstance(error, Exception) and not isinstance(error, SkipFrame) and not breaks_here:
        reason = f"{type(error).__name__} after something was mended"
        log.debug("%s: %s", reason, error)
        if hasattr(output, "graphmend_conditional"):
            from . import conds

            conds.forgo(output)
        if captured:
            _capture_less(output, reason, str(error))
        _abandon(reason, one_graph)


@at_trace_time(otherwise=None)
def expect_no_handler() -> None:
    """Abandon the compilation if a handler stands around the ``assert`` that Dynamo is about to trace.

    What Dynamo makes of it fails in the graph, where nothing can catch it.  Without us, a break further on may have
    kept the frame from being compiled at all, and then it was caught.
    """
    tracer = translator()
    if is_caught(tracer):
        _abandon("an assert stands in a try", tracer.one_graph)


@at_trace_time(otherwise=True)
def follows_guard() -> bool:
    """Does the effect at hand stand in a ``finally``, after a guard whose failure would still let it happen?

    Then the compilation is abandoned, except under ``fullgraph=True``.
    """
    tracer = translator()
    if not hasattr(tracer.output, "graphmend_guarded") or not is_in_finally(tracer):
        return False
    _abandon("an effect in a finally follows a guard", tracer.one_graph)
    return True


def _abandon(reason: str, one_graph: bool = False) -> None:
    """Trace the frame anew as it was written, unless that has been done, or ``fullgraph=True`` leaves no other way."""
    context = CompileContext.try_get()  # one for all attempts to trace the frame
    if context is not None and not one_graph and not is_abandoned():
        context.graphmend_abandoned = True
        trace_anew(reason)


@at_trace_time(otherwise=True)
def is_abandoned() -> bool:
    """Is every statement of this compilation to be traced as it was written?"""
    return hasattr(CompileContext.try_get(), "graphmend_abandoned")


@at_trace_time(otherwise=True)
def is_uncaptured() -> bool:
    """Is every number in this compilation to be read as it was written?"""
    return is_abandoned() or most_captured() == 0


def most_captured() -> float:
    """How many operations of this compilation may capture what they read?  The next breaks the graph."""
    limit: float = getattr(CompileContext.try_get(), "graphmend_most_captured", math.inf)
    return limit


def _capture_less(output: Any, reason: str, error: str) -> None:
    """Trace the frame anew: first, take for granted that captured numbers are neither 0 nor 1, as Dynamo does of sizes.

    That is what most backends fail on.  Then, unless ``fullgraph=True`` forbids it, read the last number that the error
    names as it was written, so that the graph ends there, and then all of them.
    """
    context = CompileContext.try_get()
    if context is not None and not are_above_one() and most_captured() == math.inf:
        log.debug("captured numbers are taken to be above one: %s", reason)
        context.graphmend_above_one = True
        trace_anew(reason)
    if output.graphmend_one_graph:
        return
    last = _last_named(error, output.graphmend_captured) if most_captured() == math.inf else 0
    leave_uncaptured(reason, after=last)


def _last_named(error: str, captured: dict[str, int]) -> int:
    """Which capture is the last of those whose numbers the error is about?  The first, 0, where that cannot be told."""
    expression = _DECIDING.search(error)
    named = _UNBACKED.findall(expression[1]) if expression else ()
    return max([captured.get(symbol, 0) for symbol in named], default=0)


def are_above_one() -> bool:
    """Is it taken for granted in this compilation that captured numbers are neither 0 nor 1?"""
    return hasattr(CompileContext.try_get(), "graphmend_above_one")


def leave_uncaptured(reason: str, after: int = 0) -> None:
    """Trace the frame anew, with the reads of numbers as they were written, but for the first; unless that was done."""
    log.debug("numbers are read as they were written, but for the first %d: %s", after, reason)
    context = CompileContext.try_get()
    if context is not None and not is_uncaptured():
        context.graphmend_most_captured = after
        vars(context).pop("graphmend_above_one", None)
        trace_anew(reason)


@at_trace_time(otherwise=None)
def draw_at_once() -> None:
    """Trace the frame anew, with numbers drawn where they are written."""
    context = CompileContext.try_get()
    if context is not None and not draws_at_once():
        context.graphmend_draws_at_once = True
        trace_anew("a number is drawn")


@at_trace_time(otherwise=True)
def draws_at_once() -> bool:
    """Is every number in this compilation to be drawn where it is written?"""
    return hasattr(CompileContext.try_get(), "graphmend_draws_at_once")


def trace_anew(reason: str) -> NoReturn:
    """Let Dynamo forget what it has traced of the frame, and start again."""
    from torch._dynamo.exc import UnspecializeRestartAnalysis  # the one that also forgets where the trace has been

    vars(CompileContext.get()).pop("graphmend_drawn_on", None)  # by the graph that there is no more
    raise UnspecializeRestartAnalysis(restart_reason=f"graphmend_hook: {reason}")
