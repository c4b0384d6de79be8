"""Loggers that are off at the level of a call: nothing is delivered, and a guard looks whether that is still so.

A delivery takes some microseconds of each call, to find out what a logger could have said beforehand.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from . import code_guards
from .tracer import at_trace_time, held, python_of, translator

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
    if vars(logging.Logger)[name].__code__.co_filename == logging.__file__
}


@at_trace_time(otherwise=None)
def look(method: str) -> None:
    """Is the logger at hand off for that method?  `is_off` has the answer."""
    output = translator().output
    variable = held("graphmend_target")
    output.graphmend_is_off = (
        method in _LEVELS
        and variable.source is not None
        and _silent(python_of(variable), method)
        and not any(map(_is_of_logging, output.side_effects.store_attr_mutations))
    )
    if output.graphmend_is_off:
        logger = python_of(variable)
        guarded = vars(output).setdefault("graphmend_off", set())
        if (logger, method) not in guarded:
            guarded.add((logger, method))
            code_guards.install(
                [variable.source], functools.partial(_silent, method=method), f"{method} of the logger is off"
            )


@at_trace_time(otherwise=False)
def is_off() -> bool:
    """What `look` found last."""
    return bool(translator().output.graphmend_is_off)


def _is_of_logging(changed: Any) -> bool:
    """Has the traced code assigned to an attribute of what decides whether a logger is on?"""
    return isinstance(getattr(changed, "value", None), (logging.Logger, logging.Manager))


def _silent(logger: Any, method: str) -> bool:
    """Does that method, which is nobody's own, have nothing to do?"""
    kind = type(logger)
    return (
        all(getattr(kind, name, None) is _METHODS.get(name, _METHODS) for name in (method, "isEnabledFor"))
        and vars(logger).keys().isdisjoint((method, "isEnabledFor"))
        and not logger.isEnabledFor(_LEVELS[method])
    )
