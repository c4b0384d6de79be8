"""Loggers that are off at the level of a call: nothing is delivered, and a guard asks whether they still are.

A delivery would take some microseconds of each call of the compiled code, only for the logger to say nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ...engine.door import frame_guards
from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
# The methods as Python has them; a program may put others in their place.
_METHODS = {
    name: vars(logging.Logger)[name]
    for name in (*_LEVELS, "isEnabledFor")
    if getattr(getattr(vars(logging.Logger)[name], "__code__", None), "co_filename", "") == logging.__file__
}


@question(otherwise=False)
def is_silent(trace: Trace, method: str, target: Variable) -> bool:
    """Is the logger off for that method?  Then the code is compiled for that, with a guard."""
    if method not in _LEVELS or target.source is None:
        return False
    found = frame_guards.inputs_at([target.source], trace.compilation)
    if found is None:
        return False
    [logger] = found
    if not isinstance(logger, logging.Logger):
        return False
    silent = _test_of(type(logger), method)
    if not silent(logger) or any(map(_is_of_logging, trace.output.side_effects.store_attr_mutations)):
        return False
    note = f"{method} of the logger is off"
    frame_guards.install(trace.compilation, (logger, method), [target.source], silent, note)
    return True


def _is_of_logging(changed: Any) -> bool:
    """Has the traced code assigned to an attribute of what decides whether a logger is on?"""
    return isinstance(getattr(changed, "value", None), (logging.Logger, logging.Manager))


def _test_of(kind: Any, method: str) -> Callable[[Any], bool]:
    """The test, made before each call, that this method of a logger of class `kind` is Python's, and says nothing."""
    level, methods = _LEVELS[method], {name: _METHODS.get(name) for name in (method, "isEnabledFor")}
    stock, enabled = methods.values()

    def silent(logger: Any) -> bool:
        return (
            type(logger) is kind
            and getattr(kind, method) is stock
            and kind.isEnabledFor is enabled
            and methods.keys().isdisjoint(logger.__dict__)
            and not logger.isEnabledFor(level)
        )

    return silent
