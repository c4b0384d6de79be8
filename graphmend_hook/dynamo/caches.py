"""Functions behind a cache of `functools`: in eager they run at their first call, and Dynamo traces them at each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import frame_guards
from .trace import Trace
from .variables import Variable

_UNWRAPS = "getattr_and_trace"  # of `torch._dynamo.polyfills`: calls what a wrapper in C wraps


def is_in_a_cache(trace: Trace) -> bool:
    """Is such a function being traced?"""
    return next(_wrappers(trace), None) is not None


def is_remembered(trace: Trace) -> bool:
    """Is one being traced that eager would not run, because its result is known?  A guard then asks if it still is.

    Of a function without arguments the size of the cache tells; what is kept by arguments cannot be looked at.
    """
    for wrapper, has_arguments in _wrappers(trace):
        if has_arguments or wrapper.source is None:
            continue
        found = frame_guards.inputs_at([wrapper.source], trace.compilation)
        if found is not None and _is_full(found[0]):
            key = (_is_full, id(found[0]))
            frame_guards.install(trace.compilation, key, [wrapper.source], _is_full, "the result is cached")
            return True
    return False


def _is_full(wrapper: Any) -> bool:
    return wrapper.cache_info().currsize > 0  # type: ignore[no-any-return]


def _wrappers(trace: Trace) -> Iterator[tuple[Variable, bool]]:
    """The caches behind which traced functions are, the innermost first, each with whether it was given arguments."""
    for frame in trace.frames():
        wrapper = frame.symbolic_locals.get("wrapper_obj")
        if wrapper is None or frame.f_code.co_name != _UNWRAPS:
            continue
        wrapper = wrapper.realize()
        if hasattr(getattr(wrapper, "wrapper_obj", None), "cache_info"):
            given = [frame.symbolic_locals.get(name) for name in ("args", "kwargs")]
            counts = [-1 if each is None else len(each.realize().items) for each in given]
            yield wrapper, counts != [2, 0]  # two are of `_UNWRAPS` itself
