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

from ..attempt.compilation import Compilation
from .frame_guards import install, may_be_relied_on
from .question import at_connection
from .tracer import covered_trace_at, trace_at
from .variables import Variable, is_unread

_AT_THE_LEFT = ("appendleft", "extendleft")


@dataclass
class _Bounded:
    """The deques that an attempt has found which have a greatest length, by the `id` of Dynamo's variables."""

    found: dict[int, tuple[Variable, int]] = field(default_factory=dict)


@at_connection
def watch() -> None:
    """Stand where Dynamo makes variables of deques, and where it changes them, from now on."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.lists import DequeVariable

    dispatch = VariableBuilder._type_dispatch()  # a table that is made once
    if not hasattr(dispatch[deque], "__wrapped__"):
        dispatch[deque] = _noting(dispatch[deque])
        DequeVariable.call_method = _bounded(DequeVariable.call_method)
        for read in ("var_getattr", "tp_getattro_impl"):  # the latter since torch 2.15
            if read in vars(DequeVariable):
                setattr(DequeVariable, read, _of_bounded(vars(DequeVariable)[read]))
        InstructionTranslatorBase._load_attr = _unread(InstructionTranslatorBase._load_attr)


def _unread(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """For ``unread.maxlen`` a deque need not be looked at."""

    @functools.wraps(otherwise)
    def load_attr(translator: Any, attribute: Any) -> Any:
        from torch._dynamo.variables.constant import ConstantVariable

        owner = translator.stack[-1]
        is_deque = attribute == "maxlen" and is_unread(owner) and owner.peek_type() is deque
        trace = covered_trace_at(translator) if is_deque and may_be_relied_on() else None
        if trace is None:
            return otherwise(translator, attribute)
        most = owner.peek_value().maxlen
        _expect(trace.compilation, owner.source, most)
        translator.stack[-1] = ConstantVariable.create(most)
        return None

    return load_attr


def _noting(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def wrap_listlike(builder: Any, value: Any) -> Any:
        made = otherwise(builder, value)
        trace = covered_trace_at(builder.tx.output.current_tx) if type(value) is deque else None
        if trace is not None:
            most = value.maxlen
            if most is not None:
                trace.compilation.of(_Bounded).found[id(made)] = made, most
            _expect(trace.compilation, builder.source, most)
        return made

    return wrap_listlike


def _expect(compilation: Compilation, source: Any, most: int | None) -> None:
    """Guard the greatest length of the deque that is there."""
    holds = functools.partial(_has, most)
    install(compilation, ("most", source), [source], holds, f"has a maxlen of {most}")


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
