"""Which caller a call shows, as Dynamo finds its arguments: ``stacklevel``, and what keeps it from being told.

Dynamo inlines these functions and folds their tests.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeGuard

from ...engine.door.callers import are_known, constant_of, standing_at
from .codes import READS_STACK, SHOWS_CALLER

# The arguments of a call, where one may say which caller is shown; None in the place of a text.
Shown = tuple[tuple[Any, ...], dict[str, Any]]
Delivery = Callable[[Any, Any], Any]

_WARN = warnings.warn
# They read the exception, or any number of frames, or have processes wait for each other.
_READING = ("exc_info", "stack_info", "source", "skip_file_prefixes", "use_call_stack", "in_order")
_LEVEL = 2  # the place of `stacklevel` in the arguments of `warnings.warn`


def function_of(target: Any) -> Any:
    """The function that is called: of a `functools.partial`, the one that it completes."""
    return target.func if completes(target) else target


def completes(target: object) -> TypeGuard[functools.partial[Any]]:
    """Is it a `functools.partial`?  The type of other functions is not asked for: Dynamo would guard on it."""
    return isinstance(target, functools.partial) and type(target) is functools.partial


def refusal(target: Any, method: str, shown: Shown) -> str:
    """The code of the refusal if the call shows what the end of the graph does not have, else ""."""
    positional, keywords = _completed(target, shown)
    for keyword in _READING:
        if keyword in keywords and keywords[keyword] is not None and keywords[keyword] is not False:
            return READS_STACK
    if _is_warning(target, method) and len(positional) > _LEVEL + 1:
        return READS_STACK
    level = constant_of(_level(target, method, shown))
    if level is None:
        return READS_STACK
    return "" if level <= 1 or are_known(level - 1) else SHOWS_CALLER


def standing(delivery: Delivery, target: Any, method: str, shown: Shown) -> tuple[Delivery, Any]:
    """The delivery, and its target, with the callers that the call may look at; `refusal` has given no reason."""
    level = constant_of(_level(target, method, shown))
    if level is None or level <= 1:
        return delivery, target
    callers: Any = standing_at(level - 1)
    return callers, (delivery, target)


def _is_warning(target: Any, method: str) -> bool:
    return method == "" and function_of(target) is _WARN


def _completed(target: Any, shown: Shown) -> Shown:
    """The arguments, with those of a `functools.partial`."""
    positional, keywords = shown
    if completes(target):
        return (*target.args, *positional), {**target.keywords, **keywords}
    return shown


def _level(target: Any, method: str, shown: Shown) -> Any:
    """The number of the frame that is shown: 1 is the statement's own."""
    positional, keywords = _completed(target, shown)
    if _is_warning(target, method) and len(positional) > _LEVEL:
        return positional[_LEVEL]
    return keywords.get("stacklevel", 1)
