"""Giving up on a trace: Dynamo forgets what it has traced of the frame, and traces it anew as it was written.

So a frame that cannot do without its breaks is compiled as it is without the hook.
"""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from .handlers import is_caught, is_in_finally
from .tracer import at_trace_time, translator


@at_trace_time(otherwise=None)
def expect_success() -> None:
    """Abandon the compilation if it fails, now that something in it has been mended.

    An operation that fails on the shapes at hand ends it: the effects before it would be lost, and its error would win
    over a guard before it.  A backend may not lower what a break had kept apart.  Where Dynamo gives the whole frame
    up, a break leaves it the part before.  Under ``fullgraph=True`` there is nothing to fall back to.
    """
    root = translator().output.root_tx
    if not root.one_graph and "step" not in vars(root):
        root.step = functools.partial(_step, root)


def _step(root: Any) -> bool:
    from torch._dynamo.exc import RestartAnalysis, SkipFrame, Unsupported

    try:
        more: bool = type(root).step(root)
    except (RestartAnalysis, SkipFrame):
        raise
    except Exception as error:
        if not isinstance(error, Unsupported) or getattr(error, "skip_frame", False):
            _abandon(root, f"{type(error).__name__} after something was mended")
        raise
    return more


@at_trace_time(otherwise=None)
def expect_no_handler() -> None:
    """Abandon the compilation if a handler stands around the ``assert`` that Dynamo is about to trace.

    What Dynamo makes of it fails in the graph, where nothing can catch it.  Without us, a break further on may have
    kept the frame from being compiled at all, and then it was caught.
    """
    tracer = translator()
    if is_caught(tracer):
        _abandon(tracer, "an assert stands in a try")


@at_trace_time(otherwise=True)
def follows_guard() -> bool:
    """Does the effect at hand stand in a ``finally``, after a guard whose failure would still let it happen?

    Then the compilation is abandoned, except under ``fullgraph=True``.
    """
    tracer = translator()
    if not hasattr(tracer.output, "graphmend_conditions") or not is_in_finally(tracer):
        return False
    _abandon(tracer, "an effect in a finally follows a guard")
    return True


def _abandon(tracer: Any, reason: str) -> None:
    """Trace the frame anew as it was written, unless that has been done, or ``fullgraph=True`` leaves no other way."""
    from torch._guards import CompileContext

    context = CompileContext.try_get()  # one for all attempts to trace the frame
    if context is not None and not tracer.one_graph and not is_abandoned():
        context.graphmend_abandoned = True
        trace_anew(reason)


@at_trace_time(otherwise=True)
def is_abandoned() -> bool:
    """Is every statement of this compilation to be traced as it was written?"""
    from torch._guards import CompileContext

    return hasattr(CompileContext.try_get(), "graphmend_abandoned")


def trace_anew(reason: str) -> NoReturn:
    """Let Dynamo forget what it has traced of the frame, and start again."""
    from torch._dynamo.exc import UnspecializeRestartAnalysis  # the one that also forgets where the trace has been

    raise UnspecializeRestartAnalysis(restart_reason=f"graphmend_hook: {reason}")
