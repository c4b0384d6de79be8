"""Functions behind a cache of `functools`: in eager they run at their first call, and Dynamo traces them at each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from . import frame_guards
from .missing_guards import UNWRAPS
from .question import question
from .tracer import Trace
from .variables import Variable

_UNPACKING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_in_a_cache(trace: Trace) -> bool:
    """Is such a function being traced?"""
    return next(_wrappers(trace), None) is not None


@question(otherwise=False)
def is_remembered(trace: Trace) -> bool:
    """Is one being traced that eager would not run, because its result is known?  A guard then asks if it still is.

    Of a function without parameters the size of the cache tells; what is kept by arguments cannot be looked at.
    """
    for wrapper in _wrappers(trace):
        if wrapper.source is None:
            continue
        found = frame_guards.inputs_at([wrapper.source], trace.compilation)
        if found is not None and _is_full(found[0]):
            key = (_is_full, id(found[0]))
            frame_guards.install(trace.compilation, key, [wrapper.source], _is_full, "the result is cached")
            return True
    return False


def _is_full(wrapper: Any) -> bool:
    """Is it the cache of a function without parameters, and does it hold the result?"""
    code = getattr(getattr(wrapper, "__wrapped__", None), "__code__", None)
    if code is None or code.co_argcount or code.co_kwonlyargcount or code.co_flags & _UNPACKING:
        return False
    return hasattr(wrapper, "cache_info") and wrapper.cache_info().currsize > 0


def _wrappers(trace: Trace) -> Iterator[Variable]:
    """The caches behind which traced functions are, the innermost first."""
    for frame in trace.frames():
        wrapper = frame.symbolic_locals.get("wrapper_obj")
        if wrapper is None or frame.f_code.co_name != UNWRAPS:
            continue
        wrapper = wrapper.realize()
        if hasattr(getattr(wrapper, "wrapper_obj", None), "cache_info"):
            yield wrapper
