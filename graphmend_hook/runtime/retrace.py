"""Giving up on a trace: Dynamo forgets what it has traced of the frame, and traces it anew as it was written.

So a frame that cannot do without its breaks is compiled as it is without the hook.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from torch._guards import CompileContext

from .handlers import is_caught, is_in_finally
from .tracer import at_trace_time, log, translator


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


def at_end(output: Any, action: Callable[[Any, BaseException | None], None]) -> None:
    """Call `action` once, with the output and the exception if there is one, at the end of this trace of the frame.

    Dynamo cleans up in a ``finally``; what is raised there takes the place of the exception that is on its way.
    """
    if "cleanup" not in vars(output):
        output.graphmend_at_end = []
        output.cleanup = functools.partial(_clean_up, output, sys.exc_info()[1])
    if action not in output.graphmend_at_end:
        output.graphmend_at_end.append(action)


def _clean_up(output: Any, outer: BaseException | None) -> None:
    """What Dynamo calls instead of the output's own `cleanup`; `outer` is no exception of this trace."""
    error = sys.exc_info()[1]
    type(output).cleanup(output)
    output.mark_bytecode_tracing_stop()
    with contextlib.ExitStack() as stack:  # one that gives orders to Dynamo raises; the others are called all the same
        for action in output.graphmend_at_end:
            stack.callback(action, output, None if error is outer else error)


def _judge(output: Any, error: BaseException | None) -> None:
    from torch._dynamo.exc import RestartAnalysis, SkipFrame, Unsupported

    one_graph, captured = output.graphmend_one_graph, hasattr(output, "graphmend_captured")
    if isinstance(error, RestartAnalysis):
        if captured and "data-dependent" in str(error.restart_reason).lower():
            _capture_less("a decision depends on a number that was captured", one_graph)
        return
    breaks_here = isinstance(error, Unsupported) and not getattr(error, "skip_frame", False)
    if isinstance(error, Exception) and not isinstance(error, SkipFrame) and not breaks_here:
        reason = f"{type(error).__name__} after something was mended"
        log.debug("%s: %s", reason, error)
        if captured:
            _capture_less(reason, one_graph)
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
    return is_abandoned() or hasattr(CompileContext.try_get(), "graphmend_uncaptured")


def _capture_less(reason: str, one_graph: bool) -> None:
    """Trace the frame anew: first, take for granted that captured numbers are neither 0 nor 1, as Dynamo does of sizes.

    That is what most backends fail on.  Then, with numbers as they were written, unless ``fullgraph=True`` forbids it.
    """
    context = CompileContext.try_get()
    if context is not None and not are_above_one() and not is_uncaptured():
        log.debug("captured numbers are taken to be above one: %s", reason)
        context.graphmend_above_one = True
        trace_anew(reason)
    if not one_graph:
        leave_uncaptured(reason)


def are_above_one() -> bool:
    """Is it taken for granted in this compilation that captured numbers are neither 0 nor 1?"""
    return hasattr(CompileContext.try_get(), "graphmend_above_one")


def leave_uncaptured(reason: str) -> None:
    """Trace the frame anew, with the reads of numbers as they were written, unless that has been done."""
    log.debug("numbers are read as they were written: %s", reason)
    context = CompileContext.try_get()
    if context is not None and not is_uncaptured():
        context.graphmend_uncaptured = True
        trace_anew(reason)


def trace_anew(reason: str) -> NoReturn:
    """Let Dynamo forget what it has traced of the frame, and start again."""
    from torch._dynamo.exc import UnspecializeRestartAnalysis  # the one that also forgets where the trace has been

    vars(CompileContext.get()).pop("graphmend_drawn_on", None)  # by the graph that there is no more
    raise UnspecializeRestartAnalysis(restart_reason=f"graphmend_hook: {reason}")
