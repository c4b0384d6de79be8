"""Loggers and functions of libraries that a call has for its effect alone, as data, and whether an object is one.

The call is made as it was written, after the graph.  Beside its arguments it shows what the logger has of its own, such
as the `extra` of an adapter: that must be plain, and the traced code must not change it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

import torch

from ...engine.attempt.attempt import Feature
from ...engine.attempt.compilation import Compilation
from ...engine.door import frame_guards
from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, python_of
from ...engine.epilogue.deferral import constant_of
from ...engine.graph_end.order import Verdict
from .codes import LOGGER_CHANGES, NO_EPILOGUE, UNKNOWN_CALL

_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "log"})
_PLAIN = (str, int, float, bool, complex, bytes, type(None), type, torch.dtype, torch.device)


@dataclass(frozen=True)
class Kind:
    """A class of loggers.

    methods: those that log, and give nothing back that a statement would use.
    holder: where a logger has the dict of what it shows with each record.
    is_usual: does it show its direct caller, and no exception?
    has_subclasses: are there others of the same package, made as the program goes?
    """

    methods: frozenset[str]
    holder: Callable[[Any], Any]
    is_usual: Callable[[Any], bool] = lambda _logger: True
    has_subclasses: bool = False


def _adapts_plainly(adapter: Any) -> bool:
    """Does the adapter log by its class's own methods, with a logger that does by Python's?"""
    logger, own = adapter.logger, {*_LEVELS, "process"}
    return (
        own.isdisjoint(vars(adapter))
        and isinstance(logger, logging.Logger)
        and all(
            name not in vars(logger) and getattr(type(logger), name) is getattr(logging.Logger, name)
            for name in ("log", "_log", "findCaller", "isEnabledFor")
        )
    )


KINDS = {
    "logging.LoggerAdapter": Kind(_LEVELS, lambda adapter: adapter.extra, _adapts_plainly),
    "accelerate.logging.MultiProcessAdapter": Kind(
        _LEVELS | {"warning_once"}, lambda adapter: adapter.extra, _adapts_plainly
    ),
    "loguru._logger.Logger": Kind(
        _LEVELS | {"trace", "success"},
        # exception, depth, record, lazy, colors, raw, capture, patchers, extra
        lambda logger: logger._options[8],
        lambda logger: len(logger._options) == 9 and not logger._options[0] and logger._options[1] == 0,
    ),
    "structlog._config.BoundLoggerLazyProxy": Kind(_LEVELS, lambda proxy: proxy._context),
    "structlog._base.BoundLoggerBase": Kind(_LEVELS, lambda logger: logger._context, has_subclasses=True),
}
# Functions, with where the library keeps the frames that they leave out when they look for their caller.
FUNCTIONS = {
    f"absl.logging.{name}": "absl.logging.ABSLLogger._frames_to_skip"
    for name in (*_LEVELS - {"critical"}, "log_if", "log_first_n", "log_every_n", "vlog")
} | {"tqdm.std.tqdm.write": ""}
# Functions that a decorator has made, and gave the name of what it was given: by that, where they are.
DECORATED = {
    "torchmetrics.utilities.prints._warn": "torchmetrics.utilities.prints.rank_zero_warn",
    "torchmetrics.utilities.prints._info": "torchmetrics.utilities.prints.rank_zero_info",
}
FUNCTIONS |= dict.fromkeys(DECORATED.values(), "")
_WARNING = frozenset({"torchmetrics.utilities.prints.rank_zero_warn"})  # of those, by `warnings.warn`


def _is_made_each_time() -> bool:
    """Does structlog ask for its configuration at each call, also of a logger that is kept?"""
    return not sys.modules["structlog"].get_config()["cache_logger_on_first_use"]


# Functions that look a logger up, with whether one that was looked up while tracing does for all calls.
LOOKUPS = {f"structlog.{module}.get_logger": _is_made_each_time for module in ("_config", "stdlib")}


_LATE = Feature("what an object shows is what it shows at the end of the graph")  # by the object's `id`


@dataclass
class _Shown:
    """Objects whose contents are shown with what waits for the end of the graph.  changed: by the traced code."""

    objects: list[Any] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)


class _LookedUp(list[Any]):
    """The loggers that were looked up while tracing."""


@question(otherwise=UNKNOWN_CALL)
def why_no_logger(trace: Trace, target: Variable, method: str) -> str:
    """The code of the refusal if the method of the object is not known to log, or may show other things later."""
    cls = target.python_type()
    kind = _kind_of(cls)
    if kind is None or method not in kind.methods or target.source is None:
        return UNKNOWN_CALL
    found = frame_guards.inputs_at([target.source], trace.compilation)
    if found is None:
        return NO_EPILOGUE
    [logger] = found

    must_be_new = any(logger is each for each in trace.compilation.of(_LookedUp))

    def is_fit(logger: Any) -> bool:
        if must_be_new and "bind" in vars(logger):  # structlog has begun to keep its configuration
            return False
        return type(logger) is cls and _is_fit(kind, logger, method)

    if not is_fit(logger):
        return LOGGER_CHANGES
    shown = [logger, kind.holder(logger)]
    if not all(trace.compilation.allows(_LATE, id(each)) for each in shown):
        return LOGGER_CHANGES
    key = (_is_fit, id(logger), method)
    frame_guards.install(trace.compilation, key, [target.source], is_fit, f"what {method} shows is plain")
    trace.compilation.of(_Shown).objects += shown
    trace.compilation.judge(Verdict.LOGGERS, _judge_graph)
    trace.compilation.before_end(_look)
    trace.compilation.at_end(_judge)
    return ""


def _kind_of(cls: type) -> Kind | None:
    for base in cls.__mro__:
        kind = KINDS.get(f"{base.__module__}.{base.__qualname__}")
        if kind is not None and _named(base.__module__, base.__qualname__) is base:
            related = kind.has_subclasses and _package(cls.__module__) == _package(base.__module__)
            return kind if base is cls or related else None
    return None


def _is_fit(kind: Kind, logger: Any, method: str) -> bool:
    try:
        own, shown = getattr(logger, "__dict__", {}), kind.holder(logger)
        if method in own or not kind.is_usual(logger):
            return False
        return shown is None or (type(shown) is dict and all(isinstance(each, _PLAIN) for each in shown.values()))
    except (AttributeError, IndexError, TypeError):  # another version of the library
        return False


def _look(compilation: Compilation) -> None:
    shown, effects = compilation.of(_Shown), compilation.output.side_effects
    for each in shown.objects:
        variable = effects.id_to_variable.get(id(each))
        if variable is not None and effects.is_modified(variable):
            shown.changed.add(id(each))


def _judge_graph(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    _look(compilation)  # before a backend has the graph; where there is none, `_judge` is left
    _judge(compilation, None)


def _judge(compilation: Compilation, error: BaseException | None) -> None:
    changed = compilation.of(_Shown).changed
    if error is None and changed:
        compilation.without(*map(_LATE.at, changed), reason="what a logger shows is changed")


@question(otherwise=False)
def is_function(trace: Trace, target: Variable) -> bool:
    """Is it one of the functions above, which looks for its caller no further than the statement at hand?"""
    function = python_of(target)
    name = _name_of(function)
    if name not in FUNCTIONS:
        return False
    where = FUNCTIONS[name].rpartition(".logging.")
    left_out: Iterable[Any] = _named(where[0] + ".logging", where[2]) if where[0] else ()
    code = trace.code
    return code is None or not any((code.co_filename, code.co_name) == frame[:2] for frame in left_out)


@question(otherwise=False)
def warns(_trace: Trace, target: Variable) -> bool:
    """Is it one of those that call `warnings.warn`?"""
    return _name_of(python_of(target)) in _WARNING


@question(otherwise=False)
def is_lookup(_trace: Trace, target: Variable) -> bool:
    """Is it one of the functions that look a logger up, and does one that is looked up now do for all calls?"""
    does = LOOKUPS.get(_name_of(python_of(target)))
    return does is not None and does()


@question(otherwise=None)
def logger_of_library(trace: Trace, function: Variable, name: str | None = None) -> Any:
    """The logger that the function gives."""
    logger = python_of(function)(*(() if name is None else (name,)))
    trace.compilation.of(_LookedUp).append(logger)
    return constant_of(trace, logger, "graphmend_logger")


def _name_of(function: Any) -> str:
    """Where a function of a library is, "" if something else is there."""
    if isinstance(function, MethodType):  # torch 2.15 has it bound to its class
        function = function.__func__
    if not isinstance(function, FunctionType):
        return ""
    name = f"{function.__module__}.{function.__qualname__}"
    if name in DECORATED and _named(function.__module__, DECORATED[name].rpartition(".")[2]) is function:
        return DECORATED[name]
    known = _named(function.__module__, function.__qualname__)
    return name if getattr(known, "__func__", known) is function else ""


def _named(module: str, qualname: str) -> Any:
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def _package(module: str) -> str:
    return module.partition(".")[0]
