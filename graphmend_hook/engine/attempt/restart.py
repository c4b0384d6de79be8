"""Giving up on an attempt: Dynamo forgets what it has traced of the frame, and starts anew with less.

So a frame that cannot do without its breaks is compiled as it is without the hook.
"""

from __future__ import annotations

import logging
import sys
import warnings
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from ..door.question import question
from ..door.torch_modes import Modes
from ..door.tracer import Trace, is_caught, is_in_finally, log
from ..epilogue.rerun import Plan, see_switches
from ..facts.operations import divides_whole_numbers
from ..facts.writes import operations
from ..graph_end import dead_code
from ..graph_end.order import Verdict
from ..numbers.size_guards import respect_limits
from . import (
    resumed_frames,  # noqa: F401  it counts what is compiled anew
    retreats,
    skipped_frames,
)
from .as_written import mending
from .attempt import MENDING
from .compilation import Compilation
from .retreats import Failure

_LEAVES = "Observed exception"  # says Dynamo where one leaves the frame that it traces, and gives it up for good
_WAYS = (sys, warnings, logging)
_OF_TENSORS = torch._tensor_str.PRINT_OPTS  # how they are shown
_OF_LOGGING = (logging.Filterer, logging.Formatter, logging.Manager)  # a logger and a handler are filterers


@dataclass
class Ending:
    """How the attempt is judged in the end.

    modes: those at the guards.
    is_redirected: does the traced code change where effects go?
    """

    modes: list[Modes] = field(default_factory=list)
    is_redirected: bool = False


@question(otherwise=None)
def expect_success(trace: Trace) -> None:
    """Give up on the attempt that traces the caller, if it fails: see `expect_success_of`."""
    expect_success_of(trace.compilation)


def expect_success_of(compilation: Compilation) -> None:
    """Give up on the attempt if it fails, now that something in it has been mended.

    An operation that fails on the shapes at hand ends it: the effects before it would be lost, and its error would win
    over a guard before it.  A backend may not lower what a break had kept apart.  Where Dynamo gives the whole frame
    up, a break leaves it the part before; so too where the data at hand has decided for a ``raise``.  Under
    ``fullgraph=True`` there is nothing to fall back to.

    If its graph fails, the modes that it has switched are put back: without us it may have run in eager.
    """
    from ..epilogue.delivery import connect

    connect()
    compilation.at_end(_judge)
    compilation.attempts.ends.add(_judge)
    dead_code.see_to(compilation)
    skipped_frames.remember(compilation)
    respect_limits(compilation)
    compilation.judge(Verdict.SWITCHES, see_switches)


def _judge(compilation: Compilation, error: BaseException | None) -> None:
    failure = _failure(compilation, error)
    if failure is not None and (bets := retreats.after(failure)):
        log.debug("%s: %s", failure.reason, error)
        compilation.without(*bets, reason=failure.reason)


def _failure(compilation: Compilation, error: BaseException | None) -> Failure | None:
    """Has the attempt failed, for a reason that no judge has named?"""
    from torch._dynamo.exc import RestartAnalysis, SkipFrame, Unsupported

    if isinstance(error, RestartAnalysis):
        reason = "a decision depends on a number that was captured"
        return Failure(compilation, reason, error, str(error.restart_reason), restarts=True)
    if isinstance(error, Unsupported) and str(error).startswith(_LEAVES):
        reason = "an exception leaves the frame after something was mended"
        return Failure(compilation, reason, error, str(error), gives_up=True)
    breaks_here = isinstance(error, Unsupported) and not getattr(error, "skip_frame", False)
    if not isinstance(error, Exception) or isinstance(error, SkipFrame) or breaks_here:
        return None
    if _fails_by_itself(compilation, error):
        return None
    reason, gives_up = f"{type(error).__name__} after something was mended", isinstance(error, Unsupported)
    return Failure(compilation, reason, error, str(error), gives_up=gives_up)


_failing: dict[tuple[str, str], int] = {}  # how a backend has failed: how many graphs had been compiled by then


def _fails_by_itself(compilation: Compilation, error: Exception) -> bool:
    """Has the backend failed as it does on a frame as it was written, and has none compiled anything since?

    Then it is not for what was mended, and another attempt would end as this one: its compiler is missing, say.
    """
    from torch._dynamo.exc import BackendCompilerFailed
    from torch._dynamo.utils import counters

    if not isinstance(error, BackendCompilerFailed):
        return False
    how, compiled = (error.backend_name, str(error)), counters["stats"]["unique_graphs"]
    if not compilation.allows(MENDING):
        _failing[how] = compiled
    return bool(_failing.get(how) == compiled)


@question(otherwise=None)
def expect_no_handler(trace: Trace) -> None:
    """Give up on the attempt if a handler may stand around the ``assert`` that Dynamo is about to trace.

    What Dynamo makes of it fails in the graph, where nothing can catch it.  Without us, a break further on may have
    kept the frame from being compiled at all, and then it was caught.
    """
    bet = mending(trace.compilation)
    if bet and (is_caught(trace) or trace.is_in_an_unknown_context):
        trace.compilation.without(bet, reason="an assert stands in a try")


@question(otherwise=None)
def expect_no_trap(trace: Trace) -> None:
    """Give up on the guard at hand if its graph divides whole numbers, on torch 2.12.

    The guard may be what keeps zeros away, and there a kernel of Inductor's that divides by one ends the process.
    """
    if torch.__version__ < "2.13":
        trace.compilation.judge(Verdict.DIVISIONS, _judge_divisions)


def _judge_divisions(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    bet = mending(compilation, even_one_graph=True)
    if bet and any(map(divides_whole_numbers, operations(module))):
        compilation.without(bet, reason="whole numbers are divided behind a guard")


@question(otherwise=None)
def expect_no_redirection(trace: Trace) -> None:
    """Give up on the effect at hand if the traced code changes later where it goes: it has it after those changes."""
    trace.compilation.before_end(_see_changes)
    trace.compilation.at_end(_judge_changes)


def _see_changes(compilation: Compilation) -> None:
    changed = compilation.output.side_effects.store_attr_mutations
    compilation.of(Ending).is_redirected = any(map(redirects, changed))


def _judge_changes(compilation: Compilation, error: BaseException | None) -> None:
    bet = mending(compilation)
    if bet and error is None and compilation.of(Ending).is_redirected:
        compilation.without(bet, reason="where an effect goes is changed after it")


def redirects(changed: Any) -> bool:
    """May assigning to an attribute of that change where effects go, or what they say?"""
    value = getattr(changed, "value", None)
    if isinstance(value, ModuleType):
        return value in _WAYS
    return value is _OF_TENSORS or isinstance(value, _OF_LOGGING)


@question(otherwise=None)
def expect_no_switch(trace: Trace) -> None:
    """Give up on the guard at hand if the frame leaves another mode of torch than the guard would: it fires at the end.

    What a context manager has switched ends with it, wherever the guard fires.
    """
    if not trace.is_in_a_context:
        trace.compilation.of(Ending).modes.append(Modes())
        trace.compilation.judge(Verdict.MODES, _judge_modes)


def _judge_modes(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    bet, last = mending(compilation), Modes()
    if bet and any(modes != last for modes in compilation.of(Ending).modes):
        compilation.without(bet, reason="a mode is switched after a guard")


@question(otherwise=True)
def follows_what_may_raise(trace: Trace) -> bool:
    """Does the effect at hand stand in a ``finally``, after a guard or an effect that raises only after the graph?

    In eager it happens all the same.  Then the attempt is given up, except under ``fullgraph=True``.
    """
    if not trace.compilation.of(Plan).may_raise or not is_in_finally(trace):
        return False
    if bet := mending(trace.compilation):
        trace.compilation.without(bet, reason="an effect in a finally follows what may raise")
    return True
