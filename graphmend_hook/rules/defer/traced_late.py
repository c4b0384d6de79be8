"""Values of an effect that are computed at its delivery: may what they are made of be read where the effect stands?

Dynamo inlines these functions and folds their tests.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...engine.attempt.attempt import Feature, Lifetime
from ...engine.attempt.compilation import Compilation
from ...engine.door.frame_guards import install, may_be_relied_on
from ...engine.door.question import question
from ...engine.door.tracer import SourceLine, Trace, is_caught
from ...engine.door.unguarded import PLAIN, can_be_loaded, guard_type
from ...engine.door.variables import Variable, is_unread
from ...engine.epilogue import queue
from ...engine.epilogue.deferral import tracing
from ...engine.graph_end.order import Verdict

_CONTAINERS = (list, tuple, dict)
_SIZED = (*_CONTAINERS, set, frozenset, deque)


_LATE = Feature("what an effect shows is read at its delivery", Lifetime.CODE)


@dataclass
class ReadLater:
    """The containers that an attempt leaves to be read at the delivery, with the place of the effect.

    changed: the places of those that the frame has changed by its end.
    """

    found: list[tuple[Any, SourceLine | None]] = field(default_factory=list)
    changed: set[SourceLine | None] = field(default_factory=set)


def late(
    function: Callable[..., Any], reads: tuple[Any, ...], sized: tuple[bool, ...], checked: bool
) -> tuple[Any, ...] | None:
    """What gives ``function(*reads)`` when the effect is delivered; None where it has to be computed now.

    sized: of which of them nothing is asked but the length.
    checked: only where that does not fail, as a guard makes sure of before each call.
    """
    if tracing() and may_wait(function, reads, sized, checked):
        return (queue.LATE, function, *reads)
    return None


def settled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of an effect that does not wait for the end of the graph."""
    return tuple([queue.now(value) for value in values])


@question(otherwise=False)
def may_wait(trace: Trace, function: Variable, reads: Variable, sized: tuple[bool, ...], checked: bool) -> bool:
    """Are they texts and numbers, or containers of these that stay as they are, of which the trace need read none?

    A handler of the program would not catch what the function raises.
    """
    if not trace.compilation.allows(_LATE, trace.line) or is_caught(trace):
        return False
    values = reads.realize().items
    if not any(map(is_unread, values)):
        return False
    found = [_may_wait(trace, value, of_size) for value, of_size in zip(values, sized, strict=True)]
    guards = [guard for guard in found if guard is not None]
    if len(guards) < len(found):
        return False
    if checked:
        computation = _Computation(function.realize().get_function(), values)
        if not may_be_relied_on() or not computation.succeeds(*computation.examples):
            return False
        guards.append(functools.partial(computation.guard, trace.compilation))
    for guard in guards:
        guard()
    return True


class _Computation:
    """What a function gives of values that the trace does not look at, and of constants."""

    def __init__(self, function: Callable[..., Any], values: list[Variable]) -> None:
        self._function = function
        self._unread = [is_unread(value) for value in values]
        self._constants = [None if is_unread(value) else value.as_python_constant() for value in values]
        self._sources = [value.source for value in values if is_unread(value)]
        self.examples = [value.peek_value() for value in values if is_unread(value)]

    def guard(self, compilation: Compilation) -> None:
        """Let the code run only where the function does not fail."""
        install(compilation, self, self._sources, self.succeeds, "a text can be made")

    def succeeds(self, *found: Any) -> bool:
        """Does the function not fail on the constants, and what stands for the other values?"""
        values = iter(found)
        given = [next(values) if unread else it for unread, it in zip(self._unread, self._constants, strict=True)]
        try:
            self._function(*given)
        except Exception:
            return False
        return True


def _may_wait(trace: Trace, value: Variable, of_size: bool) -> Callable[[], object] | None:
    """What installs the guards under which the value may be read later; None where it may not."""
    if not is_unread(value):
        is_constant = type(value.realize()).__name__ == "ConstantVariable" and value.python_type() in PLAIN
        return _nothing if is_constant and not of_size else None
    kind, found = value.peek_type(), value.peek_value()
    if not can_be_loaded(value.source):
        return None
    if kind in PLAIN and not of_size:
        return functools.partial(guard_type, trace, value)
    if kind not in (_SIZED if of_size else _CONTAINERS) or trace.is_in_a_body:
        return None
    if id(found) in trace.output.side_effects.id_to_variable:  # known by another name, and may have been changed
        return None
    if of_size:
        return functools.partial(_stays, trace, value, found)
    return (
        functools.partial(_stays_plain, trace, value, found) if is_plain(kind, found) and may_be_relied_on() else None
    )


def _nothing() -> None: ...


def _stays(trace: Trace, value: Variable, found: Any) -> None:
    """Guard the type of a container; if the frame changes it by the end of the graph, it is read where it stands."""
    guard_type(trace, value)
    trace.compilation.of(ReadLater).found.append((found, trace.line))
    trace.compilation.judge(Verdict.READ_LATER, _judge)
    trace.compilation.before_end(_look)
    trace.compilation.at_end(_judge_end)


def _stays_plain(trace: Trace, value: Variable, found: Any) -> None:
    _stays(trace, value, found)
    kind = type(found)
    key = ("plain container", value.source)
    install(trace.compilation, key, [value.source], functools.partial(is_plain, kind), "holds texts and numbers")


def is_plain(kind: type, value: Any) -> bool:
    """Is it a container of that very type which holds nothing but texts and numbers?"""
    if type(value) is not kind:
        return False
    parts: Any = [*value, *value.values()] if isinstance(value, dict) else value
    return PLAIN.issuperset(map(type, parts))


def _judge(compilation: Compilation, _module: object = None) -> None:
    """Has the frame changed a container that is to be read later?  So far, or by the end of the attempt."""
    _look(compilation)
    changed = compilation.of(ReadLater).changed
    if changed:
        reason = "a container is changed behind the effect that shows it"
        compilation.without(*map(_LATE.at, changed), reason=reason)


def _judge_end(compilation: Compilation, error: object) -> None:
    if error is None:
        _judge(compilation)


def _look(compilation: Compilation) -> None:
    effects, later = compilation.output.side_effects, compilation.of(ReadLater)
    for found, line in later.found:
        variable = effects.id_to_variable.get(id(found))
        if variable is not None and effects.is_modified(variable):
            later.changed.add(line)
