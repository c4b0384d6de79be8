"""Appends to lists that the trace does not look at: they are made behind the graph, and nothing guards the length.

Dynamo inlines these functions and folds their tests.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.attempt import Feature, Lifetime
from ...engine.attempt.compilation import Compilation
from ...engine.door.frame_guards import install, may_be_relied_on
from ...engine.door.question import question
from ...engine.door.tracer import SourceLine, Trace
from ...engine.door.unguarded import can_be_loaded, guard_type, is_unread_plain
from ...engine.door.variables import Variable, is_made_here, is_unread
from ...engine.epilogue import queue
from ...engine.epilogue.deferral import tracing
from ...engine.graph_end.order import Verdict
from ...engine.numbers import state_lists
from ...engine.numbers.late_numbers import has_text, is_late_list
from .codes import MAY_CHANGE
from .traced import append, effects_around, refusal_here
from .traced_texts import kept

_LISTS = (list, deque)
NEW = "+new"
_MOST_ITEMS = 64  # that are appended by one statement
APPENDS = ("+", NEW)  # of a value; and of a tuple or a dict that is made for it
_KEPT = Feature("an append waits for the end of the graph", Lifetime.CODE)


@dataclass
class Kept:
    """The lists that an attempt appends to behind the graph, with the place of each append.

    looked_at: the places of those that the trace has looked at by its end.
    """

    found: list[tuple[Any, SourceLine | None]] = field(default_factory=list)
    looked_at: set[SourceLine | None] = field(default_factory=set)


def kept_behind(target: Any, values: tuple[Any, ...], is_new: bool) -> bool:
    """Leave the append of a value for the epilogue; False where it has to be made now.

    is_new: is it a tuple or a dict that nobody else has?
    """
    if not tracing():
        return False
    side = effects_around()
    if side is not None:
        side.append((None, NEW if is_new else "+", append_now, target, values))
        return True
    if why_not_kept(target, values, is_new):
        return False
    append((queue.ITEM, append_now, target, appended(values[0], is_new)))
    state_lists.note_value(target, values[0])
    return True


def extended_behind(target: Any, items: Any) -> bool:
    """The same of ``target.extend(items)``: an append of each, if these are numbers and texts of a list made here."""
    if not tracing() or not _is_list_of_plain(items):
        return False
    if effects_around() is not None:
        for item in items:
            kept_behind(target, (item,), False)
        return True
    if refusal_here(False, (*items,), False) or not _may_wait(target):
        return False
    for place, item in enumerate(items):
        if place > 0:  # of the first one it is noted
            _note_append(target)
        append((queue.ITEM, append_now, target, kept(item)))
        state_lists.note_value(target, item)
    return True


def updated_behind(target: Any, items: Any) -> bool:
    """The same of ``target.update(items)``, of a set or a counter."""
    if not tracing() or effects_around() is not None:
        return False
    if not _is_list_of_plain(items) or refusal_here(False, (*items,), False) or not _may_be_updated(target):
        return False
    append((queue.ITEM, update_now, target, kept((*items,))))
    return True


def update_now(target: Any, values: Any) -> None:
    """The update, at its delivery."""
    target.update(values[0])


@question(otherwise=False)
def _may_be_updated(trace: Trace, target: Variable) -> bool:
    """Is it a set, or a counter that can count on, which is guarded?"""
    if not may_be_relied_on() or not _waits(trace, target, (Counter, set)) or not _counts(target.peek_value()):
        return False
    install(trace.compilation, ("counts", target.source), [target.source], _counts, "a counter holds numbers")
    return True


def _counts(found: Any) -> bool:
    return not isinstance(found, Counter) or all(type(count) in (int, float) for count in found.values())


@question(otherwise=False)
def holds_under_name(trace: Trace, owner: Variable, attribute: str, target: Variable) -> bool:
    """Does the object hold that value under the name, so that nobody would see it stored there once more?"""
    found, kind = getattr(owner.realize(), "value", None), owner.python_type()
    if not is_unread(target) or target.peek_type() not in _LISTS:  # Dynamo adds nothing to what is a list in part
        return False
    is_stored = kind.__setattr__ in (object.__setattr__, torch.nn.Module.__setattr__)
    is_stored = is_stored and not hasattr(getattr(kind, attribute, None), "__set__")
    is_changed = attribute in trace.output.side_effects.store_attr_mutations.get(owner.realize(), {})
    own = getattr(found, "__dict__", {})
    return is_stored and not is_changed and own.get(attribute) is target.peek_value()


def removed_behind(target: Any) -> bool:
    """Leave it for the epilogue to take the first item away; False where it has to be taken now."""
    if not tracing() or effects_around() is not None:
        return False
    if refusal_here(False, (), False) or not _may_be_removed_from(target):
        return False
    append((queue.ITEM, remove_now, target, ()))
    return True


@question(otherwise=None)
def _note_append(trace: Trace, target: Variable) -> None:
    state_lists.note_append(trace, target)


def _is_list_of_plain(items: Any) -> bool:
    """Is it a list, made here, of numbers and texts?"""
    return _is_list_made_here(items) and all([_is_plain(item) for item in items])  # noqa: C419  Dynamo: no generators


@question(otherwise=False)
def _is_list_made_here(_trace: Trace, items: Variable) -> bool:
    """Is it a list or a tuple that traced code has made, with something in it, and not too much?"""
    if is_unread(items):
        return False
    found = items.realize()
    is_list = type(found).__name__ in ("ListVariable", "TupleVariable") and found.source is None
    return is_list and 0 < len(found.items) <= _MOST_ITEMS


def why_not_kept(target: Any, values: tuple[Any, ...], is_new: bool = False) -> str:
    """The code of the refusal if the append of the value cannot wait for the epilogue; else ""."""
    is_copied = _is_copied(values[0], is_new)
    if not is_copied and not _is_object(values[0]):
        return MAY_CHANGE
    why = refusal_here(False, values if is_copied else (), False)
    return why or ("" if _may_wait(target) else MAY_CHANGE)


def appended(value: Any, is_new: bool) -> Any:
    """What is appended: a copy of the value, or that very object."""
    return kept(value) if _is_copied(value, is_new) else value


def _is_copied(value: Any, is_new: bool) -> bool:
    """Does nobody ask which object it is?"""
    return _is_plain(value) or (is_new and _is_of_plain(value))


def _is_plain(value: Any) -> bool:
    """Is it a number or a text, of which nobody asks which object it is?"""
    if is_unread_plain(value) or has_text(value):
        return True
    kind = type(value)
    return kind is str or kind is int or kind is float or kind is bool


def _is_of_plain(value: Any) -> bool:
    """Is it a tuple or a dict of such?"""
    if type(value) is dict:
        return all([_is_plain(key) for key in value]) and all([_is_plain(item) for item in value.values()])  # noqa: C419  Dynamo: no generators
    return type(value) is tuple and all([_is_plain(item) for item in value])  # noqa: C419


def append_now(target: Any, values: Any) -> None:
    """The append, at its delivery."""
    target.append(values[0])


@question(otherwise=False)
def _is_object(_trace: Trace, value: Variable) -> bool:
    """Is it a tensor, an array, a list that exists behind the graph, or an object that traced code has made?"""
    if is_unread(value):
        return False
    value, kind = value.realize(), type(value.realize()).__name__
    is_made = (kind in ("ConstDictVariable", "ListVariable") and value.source is None) or is_made_here(value)
    return is_made or kind in ("TensorVariable", "NumpyNdarrayVariable") or is_late_list(value)


def remove_now(target: Any, _values: Any) -> None:
    """The removal, at its delivery."""
    if type(target) is deque:
        target.popleft()
    else:
        del target[0]


@question(otherwise=False)
def _may_be_removed_from(trace: Trace, target: Variable) -> bool:
    return _waits(trace, target) and state_lists.note_removal(trace, target)


@question(otherwise=False)
def _may_wait(trace: Trace, target: Variable) -> bool:
    """Is it a list that the trace has not looked at?  If it does later, the frame is traced anew, without."""
    if not _waits(trace, target):
        return False
    state_lists.note_append(trace, target)
    return True


def _waits(trace: Trace, target: Variable, kinds: tuple[type, ...] = _LISTS) -> bool:
    compilation = trace.compilation
    if not compilation.allows(_KEPT, trace.line) or trace.is_in_a_body:
        return False
    if not is_unread(target) or target.peek_type() not in kinds or not can_be_loaded(target.source):
        return False
    found = target.peek_value()
    if id(found) in compilation.output.side_effects.id_to_variable:
        return False
    guard_type(trace, target)
    compilation.of(Kept).found.append((found, trace.line))
    compilation.judge(Verdict.KEPT, _judge)
    compilation.before_end(_look)
    compilation.at_end(_judge_end)
    return True


def _judge(compilation: Compilation, _module: object = None) -> None:
    """Has the trace looked at one of the lists since?  It has to see what was appended."""
    _look(compilation)
    _judge_end(compilation, None)


def _judge_end(compilation: Compilation, error: object) -> None:
    """The same of a frame without a graph; what Dynamo has looked at is forgotten by then."""
    lines = compilation.of(Kept).looked_at
    if error is None and lines:
        compilation.without(*map(_KEPT.at, lines), reason="a list is looked at behind an append that waits")


def _look(compilation: Compilation) -> None:
    """See which of the lists the trace has looked at; let the code run only where the others are none of these."""
    known, kept = compilation.output.side_effects.id_to_variable, compilation.of(Kept)
    kept.looked_at |= {line for found, line in kept.found if id(found) in known}
    state_lists.expect_others(compilation)
