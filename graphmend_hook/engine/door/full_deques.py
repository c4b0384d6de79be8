"""Deques of the program that are full: to Dynamo (2.12 to 2.15) none has a greatest length, unless it makes it.

So ``self.recent.append(x)`` makes a full one longer, and ``len(self.recent)`` and ``list(self.recent)`` are wrong then.
In mended code they have it.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .frame_guards import install
from .question import at_connection
from .tracer import covered_trace_at, trace_at
from .variables import Variable

_AT_THE_LEFT = ("appendleft", "extendleft")


@dataclass
class _Bounded:
    """The deques that an attempt has found which have a greatest length, by the `id` of Dynamo's variables."""

    found: dict[int, tuple[Variable, int]] = field(default_factory=dict)


@at_connection
def watch() -> None:
    """Stand where Dynamo makes variables of deques, and where it changes them, from now on."""
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.lists import DequeVariable

    dispatch = VariableBuilder._type_dispatch()  # a table that is made once
    if not hasattr(dispatch[deque], "__wrapped__"):
        dispatch[deque] = _noting(dispatch[deque])
        DequeVariable.call_method = _bounded(DequeVariable.call_method)
        for read in ("var_getattr", "tp_getattro_impl"):  # the latter since torch 2.15
            if read in vars(DequeVariable):
                setattr(DequeVariable, read, _of_bounded(vars(DequeVariable)[read]))


def _noting(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def wrap_listlike(builder: Any, value: Any) -> Any:
        made = otherwise(builder, value)
        trace = covered_trace_at(builder.tx.output.current_tx) if type(value) is deque else None
        if trace is not None:
            most = value.maxlen
            if most is not None:
                trace.compilation.of(_Bounded).found[id(made)] = made, most
            holds = functools.partial(_has, most)
            install(trace.compilation, ("most", builder.source), [builder.source], holds, f"has a maxlen of {most}")
        return made

    return wrap_listlike


def _has(most: int | None, value: Any) -> bool:
    return type(value) is deque and value.maxlen == most


def _bounded(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def call_method(target: Any, translator: Any, name: str, args: list[Variable], kwargs: Any) -> Any:
        most = _most(translator, target)
        if most is not None and name == "insert" and len(target.items) >= most:
            from torch._dynamo.exc import Unsupported

            raise Unsupported("an insert into a deque that may be full")  # eager raises an IndexError
        result = otherwise(target, translator, name, args, kwargs)
        if most is not None and len(target.items) > most:
            first = 0 if name in _AT_THE_LEFT else len(target.items) - most
            target.items[:] = target.items[first : first + most]
        return result

    return call_method


def _of_bounded(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def var_getattr(target: Any, translator: Any, name: str) -> Any:
        from torch._dynamo.variables.constant import ConstantVariable

        most = _most(translator, target) if name == "maxlen" else None
        return otherwise(target, translator, name) if most is None else ConstantVariable.create(most)

    return var_getattr


def _most(translator: Any, target: Any) -> int | None:
    """The greatest length of the deque, which is one of the program's; None if it has none."""
    trace = trace_at(translator)
    return None if trace is None else trace.compilation.of(_Bounded).found.get(id(target), (None, None))[1]
