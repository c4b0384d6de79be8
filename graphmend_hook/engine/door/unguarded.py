"""Values that the trace does not look at: generated code loads them, and nothing is guarded but their types.

It loads them behind the graph, before it replays any store: so they are those of the moment at which the trace came to
them, if the trace had not stored anything there before; and then it has looked at them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch

from .frame_guards import install, may_be_relied_on, name_of
from .question import at_connection, question
from .tracer import Trace, is_in_covered_code
from .variables import Variable, is_unread

PLAIN = frozenset({bool, float, int, str, type(None)})  # the types of texts and numbers


@at_connection
def watch() -> None:
    """Let Dynamo not look at an item of a dict to see that its key has not been deleted, from now on."""
    from torch._dynamo.variables import DeletedVariable
    from torch._dynamo.variables.lazy import LazyVariableTracker

    is_one_of = LazyVariableTracker.lazy_isinstance
    if hasattr(is_one_of, "__wrapped__"):
        return

    @functools.wraps(is_one_of)
    def is_kind(variable: Any, kind: type) -> bool:
        if kind is DeletedVariable and is_unread(variable) and is_in_covered_code():
            return False  # there was something when the frame began
        return bool(is_one_of(variable, kind))

    LazyVariableTracker.lazy_isinstance = is_kind


@dataclass
class TypesMet:
    """What a frame remembers: the types of what it does not look at, by the expression that guards have for it."""

    by_name: dict[str, set[type]] = field(default_factory=dict)


@question(otherwise=False)
def is_unread_plain(trace: Trace, value: Variable) -> bool:
    """Is it a text or a number that the trace has not looked at, nor need look at?  Its type is guarded from now on."""
    if not is_unread(value) or value.peek_type() not in PLAIN or not can_be_loaded(value.source):
        return False
    guard_type(trace, value)
    return True


@question(otherwise=True, elsewhere=lambda values: any(isinstance(value, torch.Tensor) for value in values))
def has_tensor(_trace: Trace, values: Variable) -> bool:
    """Is one of the items of a tuple a tensor?"""
    return any(map(_is_tensor, values.realize().items))


def _is_tensor(value: Variable) -> bool:
    if is_unread(value) and value.peek_type() in PLAIN:
        return False
    is_tensor: bool = value.is_tensor()
    return is_tensor


def can_be_loaded(source: Any) -> bool:
    """Can generated code load what is there?"""
    from torch._guards import Source

    while source is not None and type(source).reconstruct is not Source.reconstruct:
        inner = getattr(source, "base", None)
        if inner is None:
            return True
        source = inner
    return False


def guard_type(trace: Trace, value: Variable) -> None:
    """Let the code run only where a value that the trace does not look at has this type.

    Where it has been None, or of several plain types, any of these will do: a text is made of each in the same way.
    """
    kind = value.peek_type()
    met = trace.compilation.memory.of(TypesMet).by_name.setdefault(name_of(value.source), set())
    met.add(kind)
    is_open = kind in PLAIN and (len(met) > 1 or kind is type(None)) and may_be_relied_on()
    if is_open:
        install(trace.compilation, ("plain", value.source), [value.source], is_plain, "is a text or a number")
    else:
        guard_exact_type(value)


def guard_exact_type(value: Variable) -> None:
    """Let the code run only where it has this very type."""
    from torch._dynamo.guards import GuardBuilder, install_guard

    install_guard(value.source.make_guard(GuardBuilder.TYPE_MATCH))


def is_plain(value: Any) -> bool:
    """Is it a text, a number or None?"""
    return type(value) in PLAIN
