"""What [Defer] calls while Dynamo traces: may this effect wait, and if so, with which values?

Dynamo inlines these functions and folds their tests; in eager only `tracing` runs.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch

from ...engine.attempt import refusals
from ...engine.attempt.restart import (
    expect_no_redirection,
    expect_no_switch,
    expect_no_trap,
    expect_success,
    follows_what_may_raise,
)
from ...engine.door.functools_caches import is_remembered
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable
from ...engine.epilogue import deferral, queue
from ...engine.epilogue.deferral import Hindrance, tracing
from ...engine.epilogue.rerun import expect_failure, expect_guard
from ...engine.graph_end import dead_code
from ...engine.region import Regions
from . import traced_callers
from .codes import (
    CACHED,
    FORBIDDEN,
    HAD_AGAIN,
    HANDLER_AROUND,
    IN_FINALLY,
    MAY_CHANGE,
    NEEDS_ITS_BREAKS,
    NO_EPILOGUE,
    REDIRECTED,
    UNKNOWN_CALL,
    WARNING_RAISES,
)
from .traced_callers import completes, function_of
from .traced_library_loggers import is_function, is_lookup, logger_of_library, warns, why_no_logger
from .traced_silent_loggers import is_silent
from .traced_texts import NOBODY, computed, holds_tensor, kept, text_fails, why_items_differ, why_not_fixed

_ONCE = ("debug_once", "info_once", "warning_once", "error_once")  # methods without effect at a second call
_LOOKING = ("_log", "findCaller")  # methods that a logger calls to look at the frame
_LEVELLED = ("debug", "info", "warning", "error", "critical", "log")
# Stands for the method of an effect that was judged where it stands, in a function that a side calls.  Its values are
# copies already.
JUDGED = "!"
PRINT, _WARN = print, warnings.warn  # the program may replace them


@question(otherwise=None)
def record(_trace: Trace, code: str, operation: str = "") -> None:
    """Remember the code of why the statement at hand is traced as it was written, and the operation it is about."""
    refusals.record(code, operation)


def deferrable(target: object, method: str, values: tuple[Any, ...]) -> bool:
    """May the effect wait for the end of the graph?  Every reason why not is recorded with its code.

    target: the receiver of the call, or the function itself where `method` is "".
    values: the leaf values of its arguments, as of the call.
    """
    if not tracing():  # a graph break among the arguments: from there on the call runs for real
        return False
    if is_remembered():
        return True
    why = refusal(target, method, values)
    if why:
        record(why)
    return not why


def deferrable_as_shown(target: object, method: str, values: tuple[Any, ...], shown: traced_callers.Shown) -> bool:
    """The same of a call of which an argument may say which caller it shows."""
    if not deferrable(target, method, values):
        return False
    if is_remembered() or (method and is_silent(method, target)):
        return True
    why = traced_callers.refusal(target, method, shown)
    if why:
        record(why)
    return not why


def defer(delivery: traced_callers.Delivery, target: Any, method: str, values: tuple[Any, ...]) -> None:
    """Leave the effect for the epilogue, with a copy of every value that could change until then."""
    if not tracing():  # Dynamo could not trace this very call and makes it for real: there is no epilogue to wait for
        delivery(target, tuple([queue.now(value) for value in values]))
        return
    if is_remembered():
        expect_success()
        return
    if method and is_silent(method, target):
        values = tuple([computed(value) for value in values])  # it may fail, though nobody hears what it gives
        if deferral.is_in_a_try():
            delivery(NOBODY, values)  # a text that cannot be made is not passed over
        if text_fails(delivery, values):
            deferral.break_here()  # so the call is made for real
        expect_success()
        _keep(values)
        return
    leave(delivery, target, values)


def leave(
    delivery: traced_callers.Delivery, target: Any, values: tuple[Any, ...], where: torch.Tensor | None = None
) -> None:
    """Leave the effect for the epilogue; where a side of a branch is being traced, to that.

    where: a tensor () that has to be true for it.
    """
    side, found = effects_around(), [kept(value) for value in values]
    if side is not None:
        side.append((where, JUDGED, delivery, target, tuple(found)))
    elif where is None:
        append((queue.ITEM, delivery, target, *found))
    else:
        append((queue.EFFECT, kept(where), delivery, target, *found))


@question(otherwise=None)
def effects_around(trace: Trace) -> Any:
    """The list that takes the effects of the function that is being traced, if a side of a branch calls it.

    None outside of sides; and in a region that is none, where an effect spoils the region.
    """
    regions = trace.compilation.of(Regions).open
    return regions[-1].effects if regions else None


@question(otherwise=None)
def _keep(trace: Trace, values: Variable) -> None:
    """What a record that nobody hears would have shown is computed all the same."""
    dead_code.remember_all(trace.compilation, values)


def defer_as_shown(
    delivery: traced_callers.Delivery, target: Any, method: str, values: tuple[Any, ...], shown: traced_callers.Shown
) -> None:
    """The same, from frames that stand where the callers do that the call may show."""
    if not tracing() or is_remembered() or (method and is_silent(method, target)):
        defer(delivery, target, method, values)
    else:
        leave(*traced_callers.standing(delivery, target, method, shown), values)


def append(item: tuple[Any, ...], is_guard: bool = False) -> None:
    """Put an item where the epilogue finds it; `refusal` has given no reason against it.

    is_guard: it may raise an exception of the program.
    """
    if deferral.is_in_a_body():
        deferral.in_any_body(queue.graphmend_pending.append, item)
    else:
        queue.graphmend_pending.append(item)
    deferral.replay_last()
    expect_success()
    expect_failure()
    expect_no_redirection()
    if is_guard:
        expect_guard()
        expect_no_trap()
        expect_no_switch()


def get_logger(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, looked up while tracing if it is one that is known, which Dynamo cannot trace."""
    if in_trace():
        if function is logging.getLogger:
            return deferral.logger_of(*args)
        if is_lookup(function):
            return logger_of_library(function, *args)
    return function(*args)


def refusal(target: object, method: str, values: tuple[Any, ...]) -> str:
    """The code of the refusal if the effect cannot wait for the end of the graph, else ""."""
    unknown = queue.understood and _why_unknown(target, method)
    if unknown:
        return unknown
    silent = queue.understood and method != "" and is_silent(method, target)
    is_warning = method == "" and (function_of(target) is _WARN or warns(function_of(target)))
    why = refusal_here(is_warning, values, silent, is_shown=True)
    if not why and method in _ONCE and holds_tensor(values):
        why = MAY_CHANGE  # ``warning_once`` compares arguments, and the copy of a tensor is another object
    if not why and completes(target):
        why = why_not_fixed(target.args) or why_not_fixed(target.keywords.values())
    if not (why or silent or method in _ONCE):
        _tell_once()
    return why


def refusal_here(is_warning: bool, values: tuple[Any, ...], silent: bool, is_shown: bool = False) -> str:
    """The code of the refusal if no effect with these values can wait for the end of the graph at this place, else "".

    is_warning, silent: as `deferral.hindrance` has them; is_shown: does the effect show them, and do no more?
    """
    if not queue.understood:
        return NO_EPILOGUE
    why = why_not_deferrable(is_warning, silent, values) or why_items_differ(values, 0, is_shown)
    return why or (IN_FINALLY if not silent and follows_what_may_raise() else "")


_CODES = {
    None: "",
    Hindrance.NOT_REACHED: NO_EPILOGUE,
    Hindrance.RAISED: WARNING_RAISES,
    Hindrance.REDIRECTED: REDIRECTED,
    Hindrance.CONTAINER: MAY_CHANGE,
    Hindrance.CAUGHT: HANDLER_AROUND,
    Hindrance.AS_WRITTEN: NEEDS_ITS_BREAKS,
    Hindrance.FORBIDDEN: FORBIDDEN,
    Hindrance.CACHED: CACHED,
}


@question(otherwise=_CODES[Hindrance.NOT_REACHED])
def why_not_deferrable(trace: Trace, is_warning: bool, silent: bool, values: Variable) -> str:
    """The code of the refusal if the effect cannot wait for the end of the graph at this place, else ""."""
    return _CODES[deferral.hindrance(trace, is_warning, values, silent)]


@question(otherwise=None)
def _tell_once(trace: Trace) -> None:
    """Tell in the report that eager has the effect once more, in backward; a break would leave no graph at all."""
    if deferral.is_recomputed(trace):
        refusals.record(HAD_AGAIN)


@question(otherwise=False)
def _is_inherited(_trace: Trace, logger: Variable, method: str) -> bool:
    """Is the method that of `logging.Logger`?  One of the logger's own could look at the frame that calls it."""
    kind, own = logger.python_type(), getattr(logger.realize(), "value", None)
    return method not in getattr(own, "__dict__", {}) and all(
        getattr(kind, name, None) is getattr(logging.Logger, name, None) for name in (method, *_LOOKING)
    )


def _why_unknown(target: object, method: str) -> str:
    """The code of the refusal if it is no logger with that method, and no function that is known; else ""."""
    # The type goes first: Dynamo can tell it of more objects than it can compare.
    if method and isinstance(target, logging.Logger):
        return "" if _is_inherited(target, method) else UNKNOWN_CALL
    if method:
        return why_no_logger(target, method)
    target = function_of(target)
    if isinstance(target, (FunctionType, BuiltinFunctionType)):
        return "" if _is_builtin(target) or is_function(target) else UNKNOWN_CALL
    if not isinstance(target, MethodType):
        return UNKNOWN_CALL
    if is_function(target):
        return ""
    return _why_unknown(target.__self__, target.__name__) if target.__name__ in _LEVELLED else UNKNOWN_CALL


def _is_builtin(target: object) -> bool:
    """Is it one of Python's functions that are known to have an effect?"""
    return (
        target is PRINT
        or target is _WARN
        or target is logging.debug
        or target is logging.info
        or target is logging.warning
        or target is logging.error
        or target is logging.critical
        or target is logging.log
    )
