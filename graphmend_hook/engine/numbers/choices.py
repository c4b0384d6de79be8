"""What the data chooses from constants of the program: ``state = "ok"``, and in a side ``state = "large"``.

Such a value exists behind the graph, but what it may be is known: so a function of Python's that has no effect is
called for each of these while tracing, and the data chooses from what they give.  The item of a dict is one of those
that the dict has, and to store to it is to store to each of them what it is to be.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..door.question import at_connection
from ..door.tracer import Trace, covered_trace_at
from ..door.unguarded import PLAIN
from ..door.variables import (
    Variable,
    fake_of,
    has_fixed_sizes,
    is_plain_tensor,
    is_unread,
    python_of,
    tuple_of,
)
from . import captured_tensors, late_numbers
from .late_numbers import is_late, kind_of, same, select

_MOST = 16  # constants that the data chooses from
_MOST_PLACES = 8  # of a list, of which the data gives one
_LITTLE = 1 << 10
_OF_PLACES = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)  # the dtypes of places in a list
_GROWING = (operator.pow, operator.ipow, operator.lshift, operator.ilshift, operator.mul, operator.imul)
# Methods of texts without those that fill up, or take a text for a pattern.
_OF_TEXTS = frozenset(name for name in dir(str) if not name.startswith("_")) - {
    *("center", "expandtabs", "format", "format_map", "join", "ljust", "maketrans", "rjust", "translate", "zfill")
}


class _NoChoiceError(Exception):
    """The function fails for one of the constants, or gives what is none."""


@dataclass(frozen=True)
class _Table:
    """What generated code calls with the place of what the data has chosen."""

    constants: tuple[Any, ...]

    def __call__(self, place: int) -> Any:
        return self.constants[place]


def is_choice(value: Variable) -> bool:
    """Does the data choose it from constants?"""
    if not is_late(value):
        return False
    value = value.realize()
    return isinstance(value.function, _Table) or (value.function in (same, select) and _constants(value) is not None)


def _constants(value: Variable) -> list[Any] | None:
    """The constants that the value may be, each once; None where it may be anything else, or there are too many.

    A text of the state, that it may be, is guarded from now on.
    """
    found: dict[tuple[type, str], Any] = {}
    waiting, seen = [value], set[Variable]()
    while waiting:
        if is_unread(one := waiting.pop()) and one.peek_type() is not str:
            return None
        if (one := one.realize()) in seen:
            continue
        seen.add(one)
        if not is_late(one) and one.is_python_constant():
            constants = [one.as_python_constant()]
        elif is_late(one) and isinstance(one.function, _Table):
            constants = [*one.function.constants]
        elif is_late(one) and one.function in (same, select):
            waiting += one.operands[int(one.function is select) :]
            continue
        else:
            return None
        found |= {_spelling(each): each for each in constants}
        if len(found) > _MOST or any(type(each) is float and math.isnan(each) for each in constants):
            return None  # Python asks of what is no number whether it is the very one
    return [*found.values()]


def collapsed(trace: Trace, value: Variable) -> Variable:
    """The same choice, by a place in a table that the graph calculates; the value itself where it is none."""
    if not is_choice(value):
        return value
    value, constants = value.realize(), _constants(value) or []
    spellings = [*map(_spelling, constants)]
    places = mapped(value, lambda constant: _constant(spellings.index(_spelling(constant))))
    place = late_numbers.tensors.collapsed(trace, places) if is_late(places) else None
    if place is None or place is places:
        return value
    return late_numbers.kind_of_variable()(_Table(tuple(constants)), [place], value.kind, value.lines)


def _spelling(constant: Any) -> tuple[type, str]:
    """What tells constants apart, of which some are equal: 0.0 and -0.0, 1 and True."""
    return type(constant), repr(constant)


def applied(function: Callable[..., Any], given: Sequence[Variable]) -> Variable:
    """What a function without effects makes of constants, one of which the data chooses; None where it may fail."""
    chosen = [each for each in given if is_late(each)]
    if len(chosen) != 1 or not is_choice(chosen[0]) or any(map(is_unread, given)):
        return None
    if not all(each is chosen[0] or each.is_python_constant() for each in given):
        return None

    def on(constant: Any) -> Variable:
        values = [constant if each is chosen[0] else each.as_python_constant() for each in given]
        if _may_be_large(function, values):
            raise _NoChoiceError
        try:
            made = function(*values)
        except Exception:  # what the program would meet
            raise _NoChoiceError from None
        if type(made) not in PLAIN:
            raise _NoChoiceError
        return _constant(made)

    try:
        return mapped(chosen[0].realize(), on)
    except _NoChoiceError:
        return None


def _may_be_large(function: Callable[..., Any], values: Sequence[Any]) -> bool:
    """May the function take long for constants that the data might never choose: ``2 ** k``, ``"-" * k``?"""
    return function in _GROWING and any(type(each) is int and abs(each) > _LITTLE for each in values)


def mapped(value: Variable, on: Callable[[Any], Variable]) -> Variable:
    """What the data chooses from what `on` gives for each constant that the value may be; None where it cannot."""
    return _mapped(value.realize(), on, {})


def _mapped(value: Variable, on: Callable[[Any], Variable], known: dict[Variable, Variable]) -> Variable:
    if value not in known:
        known[value] = _mapped_anew(value, on, known)
    return known[value]


def _mapped_anew(value: Variable, on: Callable[[Any], Variable], known: dict[Variable, Variable]) -> Variable:
    trace = late_numbers.trace_now()
    if not is_late(value):
        return on(value.as_python_constant())
    if value.function is same:
        return _mapped(value.operands[0].realize(), on, known)
    if value.function is select:
        predicate, *sides = value.operands
        left, right = (_mapped(each.realize(), on, known) for each in sides)
        return _chosen(trace, predicate, left, right, value.lines)
    made = [on(constant) for constant in value.function.constants]
    place = late_numbers.tensors.tensor_of(trace, value.operands[0])
    tests = [captured_tensors.call(trace, operator.eq, place, number) for number in range(1, len(made))]
    return _one_of(trace, tests, made, value.lines)


def _one_of(trace: Trace, tests: Sequence[Variable], values: Sequence[Variable], lines: frozenset[Any]) -> Variable:
    """What the data chooses from the values: tests: of each but the first whether it is that."""
    made = values[0]
    for test, other in zip(tests, values[1:], strict=True):
        made = _chosen(trace, test, other, made, lines)
    return made


def _chosen(trace: Trace, predicate: Variable, left: Variable, right: Variable, lines: frozenset[Any]) -> Variable:
    if left is None or right is None or _are_one(left, right):
        return left if right is not None else None
    if not late_numbers.may_be_chosen(trace, left, right):
        return None
    made = late_numbers.chosen(trace, predicate, left, right)
    made.lines |= lines
    return made


def _are_one(left: Variable, right: Variable) -> bool:
    """Are they the same variable, or equal constants?"""
    if left is right:
        return True
    if any(is_unread(each) or is_late(each) or not each.is_python_constant() for each in (left, right)):
        return False
    one, other = left.as_python_constant(), right.as_python_constant()
    return one is other or (type(one) in PLAIN and _spelling(one) == _spelling(other))


def has(text: Variable, method: str) -> bool:
    """Is it a text that the data chooses, and a method of texts?"""
    return method in _OF_TEXTS and kind_of(text) is str and is_choice(text)


def called(text: Variable, method: str, args: Sequence[Variable]) -> Variable:
    """``state.startswith("l")``; None where it may fail."""
    if not has(text, method):
        return None
    return applied(lambda value, *given: getattr(value, method)(*given), [text, *args])


def item(translator: Any, held: Variable, key: Variable) -> Variable:
    """``table[key]``; None where it may fail, or be anything else than a number, a text, a module or a function.

    Of modules and functions, ``self.experts[k]``, one is called then.
    """
    found = _places(translator, held, key) if is_late(key) else None
    if found is None:
        return None
    (constants, tests), lines = found, key.realize().lines
    items = _items(translator, held, constants)
    made = _one_of(late_numbers.trace_now(), tests[1:], items, lines)
    if made is None and all(map(_is_called, items)):
        return _kind_of_part()(tests[:-1], [each.realize() for each in items], lines)
    return made


def as_number(translator: Any, held: Variable, place: Variable) -> Variable:
    """The place in a list that a tensor of one whole number is, as its number; any other key as it is."""
    is_tensor = not is_unread(place) and is_plain_tensor(place) and _length_of(held) > 0
    trace = covered_trace_at(translator) if is_tensor else None
    if trace is None or not late_numbers.may_wait_here(trace):
        return place
    fake = fake_of(place)
    is_place = has_fixed_sizes(fake) and fake.numel() == 1 and fake.dtype in _OF_PLACES
    return late_numbers.late_of(trace, place) if is_place else place


def store(translator: Any, held: Variable, key: Variable, value: Variable) -> bool:
    """``table[key] = value``; False, and nothing is done, where the table lacks what the key may be."""
    found = _places(translator, held, key)
    if found is None:
        return False
    constants, tests = found
    trace, old = late_numbers.trace_now(), _items(translator, held, constants)
    new = [_chosen(trace, test, value, each, key.realize().lines) for test, each in zip(tests, old, strict=True)]
    if None in new:
        return False
    for constant, each in zip(constants, new, strict=True):
        given = [_constant(constant), each]
        if hasattr(held, "mp_ass_subscript_impl"):  # since torch 2.15
            held.mp_ass_subscript_impl(translator, *given)
        else:
            held.call_method(translator, "__setitem__", given, {})
    return True


def _items(translator: Any, held: Variable, places: Sequence[Any]) -> list[Variable]:
    from torch._dynamo.variables.builtin import BuiltinVariable

    take = BuiltinVariable(operator.getitem)
    return [take.call_function(translator, [held, _constant(each)], {}) for each in places]


def _places(translator: Any, held: Variable, key: Variable) -> tuple[Sequence[Any], list[Variable]] | None:
    """What the key may be, and whether it is each of these, as tensors () of bool; None where one may be missing."""
    trace, key = late_numbers.trace_now(), key.realize()
    if not is_choice(key):
        return _places_in_list(trace, held, key)
    constants = _constants(key) or []
    if not all(_has(translator, held, each) for each in constants):
        return None
    truths = [mapped(key, lambda one, this=this: _constant(one == this)) for this in constants]  # type: ignore[misc]
    tests = [late_numbers.tensors.tensor_of(trace, each) for each in truths if is_late(each)]
    return (constants, tests) if len(tests) == len(constants) and None not in tests else None


def _places_in_list(trace: Trace, held: Variable, key: Variable) -> tuple[Sequence[Any], list[Variable]] | None:
    """The same of a place in a list that the data gives; that there is such a place is a guard from now on."""
    places = _numbers_in(held) if is_late(key) and kind_of(key) is int else ()
    number = late_numbers.tensors.tensor_of(trace, key) if 1 < len(places) <= _MOST_PLACES else None
    if number is None:
        return None
    tests = [captured_tensors.call(trace, operator.eq, number, each) for each in places]
    is_there = functools.reduce(functools.partial(captured_tensors.call, trace, operator.or_), tests)
    is_missing = captured_tensors.call(trace, operator.invert, is_there)
    return (places, tests) if late_numbers.tensors.may_expect_false(trace, is_missing) else None


def _numbers_in(held: Variable) -> Sequence[int]:
    """The places of a list, or the keys of a dict that the trace has made, if these are whole numbers."""
    if type(held).__name__ == "ConstDictVariable" and held.python_type() is dict and held.source is None:
        keys = [key.vt for key in held.items]
        numbers = [key.as_python_constant() for key in keys if not is_unread(key) and key.is_python_constant()]
        return numbers if len(numbers) == len(keys) and all(type(each) is int for each in numbers) else ()
    return range(_length_of(held))


def _has(translator: Any, held: Variable, key: Any) -> bool:
    """Has the table the item?"""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.dicts import ConstDictVariable

    if type(getattr(held, "value", None)) is torch.nn.ModuleDict:
        return key in held.value
    if isinstance(held, ConstDictVariable) and held.python_type() is dict:  # a class of the program's may do more
        found = BuiltinVariable(operator.contains).call_function(translator, [held, _constant(key)], {})
        return bool(found.as_python_constant())
    count = _length_of(held)
    return type(key) is int and -count <= key < count


def _length_of(held: Variable) -> int:
    """How many items are in a list or a `ModuleList`; 0 of anything else."""
    if type(held).__name__ in ("ListVariable", "TupleVariable") and held.python_type() in (list, tuple):
        return len(held.items)
    found: Any = getattr(held, "value", None)
    return len(found) if type(found) is torch.nn.ModuleList else 0


def _is_called(value: Variable) -> bool:
    """Is it a module, or a function?"""
    try:
        found = python_of(value)
    except NotImplementedError:
        return False
    return isinstance(found, torch.nn.Module) or (callable(found) and not isinstance(found, type))


_callers: list[Callable[..., Any]] = []  # the one that `call_with` was given


def call_with(caller: Callable[..., Any]) -> None:
    """Let that function, which is traced, call the one of several functions that the data chooses.

    It is given the tests, the functions, and the arguments by place and by name; it gives a tuple with what that
    returns, and None where the sides cannot be traced.
    """
    _callers[:] = [caller]


@functools.cache
def _kind_of_part() -> Any:
    """`PartVariable`."""

    class PartVariable(late_numbers.kind_of_unbound()):  # type: ignore[misc]
        """One of several modules or functions: the first whose test holds, else the last.  It may only be called."""

        def __init__(self, tests: list[Variable], parts: list[Variable], lines: frozenset[Any]) -> None:
            super().__init__(select, [*tests, *parts], late_numbers.Unbound, lines)
            self.tests, self.parts = tests, parts

        def call_function(self, translator: Any, args: Sequence[Variable], kwargs: dict[str, Variable]) -> Any:
            from torch._dynamo.variables.base import VariableTracker

            caller = VariableTracker.build(translator, _callers[0])
            options = VariableTracker.build(translator, {}) if not kwargs else _dict_of(kwargs)
            given = [tuple_of(self.tests), tuple_of(self.parts), tuple_of([*args]), options]
            found = translator.inline_user_function_return(caller, given, {})
            return late_numbers.give_up(self) if found.is_constant_none() else found.items[0]

    late_numbers.answer_identity(PartVariable, late_numbers.refuse_identity)
    return PartVariable


def _dict_of(named: dict[str, Variable]) -> Variable:
    from torch._dynamo.variables.dicts import ConstDictVariable

    return ConstDictVariable({_constant(name): value for name, value in named.items()})


def _constant(value: Any) -> Variable:
    from torch._dynamo.variables.constant import ConstantVariable

    return ConstantVariable.create(value)


@at_connection
@functools.cache
def watch() -> None:
    """Let Dynamo's dicts and lists take a key that the data chooses, from now on."""
    from torch._dynamo.variables.dicts import ConstDictVariable
    from torch._dynamo.variables.lists import ListVariable

    for kind in (ConstDictVariable, ListVariable):
        kind.call_method = _taking_choices(kind.call_method)
        if hasattr(kind, "mp_ass_subscript_impl"):  # since torch 2.15
            kind.mp_ass_subscript_impl = _storing_choices(kind.mp_ass_subscript_impl)


def _taking_choices(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def call(held: Any, translator: Any, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
        key = as_number(translator, held, args[0]) if args and not kwargs else None
        if key is not None and is_late(key):
            if name == "__setitem__" and store(translator, held, key, *args[1:]):
                return _constant(None)
            made = item(translator, held, key) if name in ("__getitem__", "get") else None
            if made is not None:
                return made
        return otherwise(held, translator, name, args, kwargs)

    return call


def _storing_choices(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def store_at(held: Any, translator: Any, key: Variable, value: Variable | None) -> Any:
        number = as_number(translator, held, key)
        if value is not None and is_late(number) and store(translator, held, number, value):
            return _constant(None)
        return otherwise(held, translator, key, value)

    return store_at


late_numbers.choices = sys.modules[__name__]
