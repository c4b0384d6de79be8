"""Lists of numbers, or of tensors, to which the data decides what is appended: they exist behind the graph.

A list that a side appends to is another value in it, ``numbers = append_to("numbers", numbers, number)``, and what
stands for it behind the branch is ``listed(p, a, q, b)``: of each number, whether it is in the list, and the number.
So nobody else may have the list: an append to it would be one to theirs.  What takes tensors out of a list in the graph
is in `late_tensor_lists`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ...source.templates import OWN
from ..door.own_code import OWN_FILES
from ..door.question import question
from ..door.tracer import Trace, is_caught
from ..door.variables import Variable, is_plain_tensor, is_unread, tuple_of
from ..region import Regions
from . import late_numbers, state_lists
from .late_numbers import OF_NUMBERS, Real, is_late, kind_of, late_variable

_MOST = 256  # numbers in a list
_NO_CODE = object()


def listed(*parts: Any) -> list[Any]:
    """The numbers that are in the list: each stands behind whether it is."""
    return [number for is_in, number in zip(parts[::2], parts[1::2], strict=True) if is_in]


def counted(*are_in: bool) -> int:
    """How many numbers are in a list."""
    return sum(are_in)


class _OfList:
    """What generated code calls with the parts of a list for a function that is given the list."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *parts: Any) -> Any:
        return self.function(listed(*parts))


of_list = functools.cache(_OfList)
_ITEMS = {place: operator.itemgetter(place) for place in (0, -1)}


def is_list(variable: Variable) -> bool:
    """Is it such a list?"""
    return is_late(variable) and variable.realize().function is listed


def parts_of(variable: Variable) -> list[Variable] | None:
    """The parts of such a list, or of one that the trace has made of numbers; None of anything else."""
    if is_unread(variable):
        return None
    variable = variable.realize()
    if is_list(variable):
        return [*variable.operands]
    if type(variable).__name__ != "ListVariable" or variable.source is not None:
        return None
    items = [each if is_unread(each) else each.realize() for each in variable.items]
    if not all(map(_may_be_part, items)):
        return None
    return certain(items)


def certain(numbers: Sequence[Variable]) -> list[Variable]:
    """The parts of a list that holds these numbers, whatever the data is."""
    from torch._dynamo.variables.constant import ConstantVariable

    return [part for number in numbers for part in (ConstantVariable.create(True), number)]


def _may_be_part(item: Variable) -> bool:
    if is_unread(item):
        return False
    return is_plain_tensor(item) or (late_numbers.is_number(item) and kind_of(item) in OF_NUMBERS)


@question(otherwise=False)
def may_grow(trace: Trace, spelling: str, target: Variable, value: Variable) -> bool:
    """May another list stand for the one of that name from now on, with the number at its end?"""
    parts = parts_of(target)
    if parts is None or len(parts) >= 2 * _MOST or not _may_be_part(value):
        return False
    if is_caught(trace):
        return False  # a handler could see what is in the list by then
    return late_numbers.may_wait_here(trace) and not _is_held_elsewhere(trace, spelling, target.realize())


@question(otherwise=None)
def grown(_trace: Trace, target: Variable, value: Variable) -> Any:
    """That other list."""
    return _of_parts([*(parts_of(target) or ()), *certain([value.realize()])], _origin(target))


def _of_parts(parts: list[Variable], origin: Variable) -> Variable:
    made = late_variable(listed, parts, list)
    made.origin = origin
    return made


def _is_held_elsewhere(trace: Trace, spelling: str, target: Variable) -> bool:
    """Does anything have the list but this name, in the function at hand and in its sides, or go through it?"""
    from torch._dynamo.variables.base import VariableTracker

    held, seen, numbers = list[Variable](), dict[int, Any](), (parts_of(target) or [])[1::2]

    def look(variable: Variable) -> None:
        traced = getattr(variable, "inline_tracer", None)  # of a generator
        if variable is target or _goes_through(variable, numbers):
            held.append(variable)
        elif traced is not None:
            VariableTracker.visit(look, [*traced.symbolic_locals.values(), *traced.stack], seen)

    for frame, is_here in _frames(trace):
        for name, value in frame.symbolic_locals.items():
            if not (is_here and name == spelling) and not name.startswith(OWN):
                VariableTracker.visit(look, value, seen)
        VariableTracker.visit(look, [*frame.stack], seen)
    effects = trace.output.side_effects
    for known in (effects.id_to_variable, *effects.store_attr_mutations.values()):
        VariableTracker.visit(look, [*known.values()], seen)
    return bool(held)


def _goes_through(iterator: Variable, numbers: Sequence[Variable]) -> bool:
    """May it be an iterator of a list that begins with these?  It has the items, and not the list."""
    if type(iterator).__name__ != "ListIteratorVariable":
        return False
    if not iterator.items or not numbers:
        return not iterator.items  # it has been asked for when there was nothing in its list
    return all(one.realize() is other for one, other in zip(iterator.items, numbers, strict=False))


def _frames(trace: Trace) -> Iterator[tuple[Any, bool]]:
    """The frames of the program, the innermost first; and whether each is of the function at hand, or of its sides."""
    side: Any = None
    for frame in trace.frames_outside():
        is_here = side is None or (side is not _NO_CODE and _is_side(side, frame.f_code))
        is_called_by_us = frame.parent is not None and frame.parent.f_code.co_filename in OWN_FILES
        side = frame.f_code if is_here and is_called_by_us else _NO_CODE
        yield frame, is_here


def _is_side(code: CodeType, around: CodeType) -> bool:
    """Is it the code of a side in that function?  A function of the program has another name there."""
    same = all(getattr(code, name, "") == getattr(around, name, "") for name in ("co_name", "co_qualname"))
    return same and code in around.co_consts


@dataclass
class _Merged:
    """The pairs of lists for which another one stands: two names of one list would get two."""

    pairs: list[tuple[Variable, Variable]] = field(default_factory=list)


def _origin(variable: Variable) -> Variable:
    """The list of the program that it has been once."""
    return getattr(variable.realize(), "origin", variable.realize())


@question(otherwise=False)
def may_be_merged(trace: Trace, left: Variable, right: Variable) -> bool:
    """Is one such a list, and the other one, too, or one that the trace has made?"""
    if not late_numbers.may_wait_here(trace):
        return False
    if is_unread(left) or is_unread(right) or not (is_list(left) or is_list(right)):
        return False
    pairs = trace.compilation.of(_Merged).pairs
    is_first = not any(one is left.realize() and other is right.realize() for one, other in pairs)
    is_one = _origin(left) is _origin(right)
    return is_first and is_one and parts_of(left) is not None and parts_of(right) is not None


@question(otherwise=())
def tensors_of_one(_trace: Trace, left: Variable, right: Variable) -> Any:
    """The tensors that `left` alone has, as a tuple."""
    one, other = parts_of(left) or [], parts_of(right) or []
    return tuple_of([each for each in one[_length_of_both(one, other) :][1::2] if each.is_tensor()])


@question(otherwise=None)
def merged(trace: Trace, predicate: Variable, left: Variable, right: Variable, tensors: Variable) -> Any:
    """What stands for `left` where the predicate holds, and for `right` elsewhere: what both begin with is in both.

    tensors: what stands for those that `left` alone has, and for those of `right`, as two tuples.
    """
    one, other = parts_of(left) or [], parts_of(right) or []
    of_left, of_right = tensors.realize().items
    length = _length_of_both(one, other)
    holds = late_numbers.late_of(trace, predicate)
    parts = [*one[:length], *_where(holds, one[length:], of_left)]
    otherwise = late_variable(operator.not_, [holds], bool)
    trace.compilation.of(_Merged).pairs.append((left.realize(), right.realize()))
    return _of_parts([*parts, *_where(otherwise, other[length:], of_right)], _origin(left))


def _length_of_both(one: Sequence[Variable], other: Sequence[Variable]) -> int:
    """How many parts the two lists begin with that are the same."""
    length = 0
    while length < min(len(one), len(other)) and _are_same(one[length : length + 2], other[length : length + 2]):
        length += 2
    return length


def _are_same(one: Sequence[Variable], other: Sequence[Variable]) -> bool:
    is_in, number = one
    is_in_too, same = other
    return number is same and (is_in is is_in_too or (_is_certain(is_in) and _is_certain(is_in_too)))


def _where(holds: Variable, parts: Sequence[Variable], tensors: Variable) -> Iterator[Variable]:
    rest = iter(tensors.realize().items)
    for is_in, number in zip(parts[::2], parts[1::2], strict=True):
        yield holds if _is_certain(is_in) else late_variable(operator.and_, [holds, is_in], bool)
        yield next(rest) if number.is_tensor() else number


def _is_certain(is_in: Variable) -> bool:
    return not is_late(is_in)


def kind_of_numbers(parts: Sequence[Variable]) -> type | None:
    """The type of the numbers that are in the list, if one is for certain, and it is one type."""
    kinds = {*map(kind_of, parts[1::2])}
    return kinds.pop() if len(kinds) == 1 and any(map(_is_certain, parts[::2])) else None


def add_handlers(kind: Any) -> None:
    """Let Dynamo's builtins take such a list."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lists import SliceVariable

    handlers = BuiltinVariable.call_function_handler_cache
    handlers[len, kind] = _length
    for function in (max, min):
        handlers[function, kind] = functools.partial(_reduced, function)
    for place in (ConstantVariable, SliceVariable):
        handlers[operator.getitem, kind, place] = _item
    otherwise = kind.call_method

    @functools.wraps(otherwise)
    def call_method(target: Any, translator: Any, name: str, args: list[Variable], kwargs: Any) -> Any:
        is_appended = name == "append" and is_list(target) and len(args) == 1 and not kwargs
        if is_appended and _may_be_part(args[0]) and not Trace(translator).compilation.of(Regions).open:
            target.operands = [*target.operands, *certain([args[0].realize()])]
            target.lines |= getattr(args[0].realize(), "lines", frozenset())
            return ConstantVariable.create(None)
        return otherwise(target, translator, name, args, kwargs)

    kind.call_method = call_method


def _length(_translator: Any, args: list[Variable], _kwargs: object) -> Any:
    if (of_state := state_lists.made_of(len, args[0])) is not None:
        return of_state
    if not is_list(args[0]):
        late_numbers.give_up(args[0])
    return late_variable(counted, args[0].realize().operands[::2], int)


def _reduced(function: Any, _translator: Any, args: list[Variable], _kwargs: object) -> Any:
    made = state_lists.made_of(function, args[0])
    return made or reduced(function, args[0]) or late_numbers.give_up(args[0])


def reduced(function: Callable[..., Any], given: Variable) -> Variable:
    """``sum(numbers)``, ``max(numbers)``: of one type, and a maximum of one number at least; None of anything else."""
    parts = parts_of(given) if is_list(given) and not is_caught(late_numbers.trace_now()) else None
    kind = None if parts is None else kind_of_numbers(parts)
    if parts and kind is None and function is sum and {*map(kind_of, parts[1::2])} <= {float, int}:
        kind = Real  # 0, of no number
    return late_variable(of_list(function), parts, kind) if parts and kind in (float, int, Real) else None


def _item(_translator: Any, args: list[Variable], _kwargs: object) -> Any:
    """``numbers[-1]``, ``numbers[0]``, which are there."""
    if (of_state := state_lists.item_of(*args)) is not None:
        return of_state
    parts = parts_of(args[0]) if is_list(args[0]) else None
    kind = None if parts is None else kind_of_numbers(parts)
    index = args[1].as_python_constant() if args[1].is_python_constant() else None
    if parts is None or kind not in OF_NUMBERS or index not in _ITEMS or type(index) is not int:
        late_numbers.give_up(args[0])
    return _end_of(parts, index) or late_variable(of_list(_ITEMS[index]), parts, kind)


def _end_of(parts: Sequence[Variable], index: int) -> Variable:
    """The first or the last number that is in the list, as the data chooses; None where the graph cannot say so."""
    pairs = [*zip(parts[::2], parts[1::2], strict=True)][:: -1 if index < 0 else 1]
    certain = next(place for place, (is_in, _) in enumerate(pairs) if _is_certain(is_in))
    trace, (_, made) = late_numbers.trace_now(), pairs[certain]
    for is_in, number in pairs[:certain][::-1]:
        predicate = late_numbers.tensors.tensor_of(trace, is_in.realize())
        if predicate is None or not late_numbers.may_be_chosen(trace, number, made):
            return None
        made = late_numbers.chosen(trace, predicate, number, made)
    return made


def predicates_of(given: Variable) -> list[Variable] | None:
    """Of each number of the list whether it is in it, as a late truth; None if one is in it for certain."""
    are_in = given.realize().operands[::2]
    return None if any(map(_is_certain, are_in)) else are_in


def is_little(number: Variable) -> bool:
    """Is it how many numbers are in a list, or a sum of those that are, which are floats: else 0?"""
    if number.function is counted:
        return True
    return number.function is of_list(sum) and {*map(kind_of, number.operands[1::2])} == {float}


def least_length(number: Variable) -> int:
    """How many numbers are in the list for certain whose length it is."""
    return sum(map(_is_certain, number.operands))
