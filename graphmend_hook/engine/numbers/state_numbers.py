"""Numbers of the program's state that a frame adds to: ``self.count += n``, ``meter.total *= 0.9``, ``seen[key] += 1``.

Dynamo looks at such a number, and compiles for each of its values anew.  Here the trace does not: the sum is a late
number, of Python's own, made behind the graph.  Where the program asks for its truth, ``if self.count % 10 == 0``, a
guard of the frame computes that from what the state is when the frame begins.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..attempt.attempt import Feature
from ..attempt.compilation import Compilation
from ..door.counters import growing, is_assigned, is_counter, outside_name, varies
from ..door.frame_guards import inputs_at, install, name_of
from ..door.question import at_connection, question
from ..door.tracer import Trace, is_covered, trace_at
from ..door.unguarded import can_be_loaded, guard_exact_type, guard_type
from ..door.variables import Variable, answer_before, is_unread, unread_kinds
from ..graph_end.order import Verdict
from . import known_numbers, late_arithmetic, late_lists, late_numbers, state_lists
from .number_inputs import number_input

_LOOKED_UP = Feature("a number of a list of the state is looked up before the graph")
_GROWING = (operator.iadd, operator.isub, operator.imul)
_OF_TWO = (operator.add, operator.sub, operator.mul)
_BOUND = 1 << 63  # no quotient of a few sums and products of whole numbers below it is too large for a float
_DIFFERENCES = (operator.sub, operator.isub)
_PRODUCTS = (operator.mul, operator.imul)
_BOUNDED = (
    late_numbers.same,
    late_numbers.select,
    min,
    max,
    abs,
    *late_arithmetic.ADDITIONS,
    *_DIFFERENCES,
    *_PRODUCTS,
    *late_arithmetic.REMAINDERS,
)


@at_connection
def watch() -> None:
    """Stand where Dynamo adds in place to what it has not looked at, from now on."""
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.tensor import SymNodeVariable

    lazies = unread_kinds()
    others = (ConstantVariable, SymNodeVariable, *lazies)
    pairs = [(owner, other) for owner in lazies[:2] for other in others]
    for function in (*_GROWING, *_OF_TWO):
        for left, right in dict.fromkeys([*pairs, *(pair[::-1] for pair in pairs if function in _OF_TWO)]):
            answer_before(function, left, right, _grown)
    for owner in lazies:
        for place in (*lazies, SymNodeVariable, late_numbers.kind_of_variable()):
            answer_before(operator.getitem, owner, place, _looked_up)
    _let_floats_wait(VariableBuilder)


def _let_floats_wait(builder: Any) -> None:
    """A float of a module that the frame adds to is a late number wherever the trace looks at it."""
    otherwise = builder.wrap_symfloat
    if hasattr(otherwise, "__wrapped__"):
        return

    @functools.wraps(otherwise)
    def wrap(built: Any, value: Any) -> Any:
        late = _late_float(built, value) if type(value) is float else None
        return otherwise(built, value) if late is None else late

    builder.wrap_symfloat = wrap


@dataclass
class _Inputs:
    """The inputs of the graph that are numbers of the state, by the expression that guards have for each."""

    found: dict[str, Variable] = field(default_factory=dict)


def input_of(trace: Trace, number: Variable) -> Variable:
    """The tensor () in which the graph is handed a number that the frame changes; a whole one has to be bounded."""
    name, found = name_of(number.source), trace.compilation.of(_Inputs).found
    if name not in found:
        guard_exact_type(number)
        found[name] = number_input(trace, number.source, number.peek_type(), f"graphmend_state_{len(found)}")
    return found[name]


def _late_float(builder: Any, value: float) -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.lazy import LazyVariableTracker

    translator = InstructionTranslator.current_tx().output.current_tx
    trace = trace_at(translator)
    if trace is None or not can_be_loaded(builder.source) or not _changes(translator, builder.source, value):
        return None
    unread = LazyVariableTracker.create(value, builder.source)
    unread._cache.realize = functools.partial(_look_at, unread._cache, builder)
    return unread_as_late(trace, unread)


def _changes(translator: Any, source: Any, value: float) -> bool:
    """Is it a number that the frame assigns to, or that was another one when the frame was compiled before?"""
    is_other = varies(translator, source, value)
    is_kept = hasattr(source, "member") or outside_name(source) is not None  # an item may be one of many
    return is_other or is_counter(translator, source) or (is_kept and is_assigned(translator, source))


def _look_at(unread: Any, builder: Any) -> None:
    """The trace looks at the float after all."""
    unread.vt = _as_without_us(builder, unread.value)


def _as_without_us(builder: Any, value: float) -> Variable:
    """What Dynamo makes of a float."""
    return type(builder).wrap_symfloat.__wrapped__(builder, value)


def _grown(
    function: Callable[..., Any], otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any
) -> Any:
    if is_covered(translator) and any(_is_state(each, function, translator) for each in args):
        made = _made(function, translator, args)
        if made is not None:
            return made
    return otherwise()(translator, args, kwargs)


def _looked_up(_function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any) -> Any:
    """``self.orders[self.step]``: a number of a list of the state, where that is known before the graph."""
    held, place = args
    is_held = is_unread(held) and held.peek_type() in (list, tuple) and can_be_loaded(held.source)
    trace = trace_at(translator) if is_held and is_covered(translator) else None
    made = None if trace is None else _number_at(trace, held, place)
    return otherwise()(translator, args, kwargs) if made is None else made


def _number_at(trace: Trace, held: Variable, place: Variable) -> Variable:
    """The late number; None where the place is a constant, and where the list may be another one by then."""
    compilation = trace.compilation
    if is_unread(place) and getattr(place, "source", None) is None:
        place = place.realize()  # a sum, since torch 2.15
    is_constant = not _is_counted(trace.translator, place) if is_unread(place) else place.is_python_constant()
    if is_constant or not compilation.allows(_LOOKED_UP) or state_lists.is_changed(compilation, held.source):
        return None
    made = known_numbers.applied(trace, operator.getitem, [held, place])
    if made is not None:
        compilation.of(_Lookups).sources.append(held.source)
        compilation.judge(Verdict.LOOKED_UP, _judge_lookups)
    return made


@dataclass
class _Lookups:
    """The lists in which an attempt has looked numbers up."""

    sources: list[Any] = field(default_factory=list)


def _judge_lookups(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    if any(state_lists.is_changed(compilation, source) for source in compilation.of(_Lookups).sources):
        compilation.without(_LOOKED_UP.at(), reason="a list is changed behind a look at it before the graph")


def _is_counted(translator: Any, place: Variable) -> bool:
    """Is it a whole number that may be another one in the next call, and that generated code can load?"""
    is_whole = place.peek_type() is int and can_be_loaded(place.source)
    return is_whole and _changes(translator, place.source, place.peek_value())


def _is_state(number: Variable, function: Callable[..., Any], translator: Any) -> bool:
    """Is it a number that the trace has not looked at, and that is to be stored where it has been read?"""
    if not is_unread(number) or number.peek_type() not in (int, float) or not can_be_loaded(number.source):
        return False
    source = number.source
    if function in _GROWING:
        is_part = getattr(source, "base", None) is not None and (hasattr(source, "member") or hasattr(source, "index"))
        return is_part or outside_name(source) is not None
    if hasattr(source, "index"):  # an item, of which nobody knows whether it is the one that is assigned
        return is_assigned(translator, source)
    at = translator.current_instruction.positions
    return at is not None and getattr(source, "member", "") == growing(translator.f_code).get(at)


def _made(function: Callable[..., Any], translator: Any, args: list[Variable]) -> Any:
    """The late number; None where the trace is to look at what it is made of."""
    trace = trace_at(translator)
    if trace is None or not late_numbers.may_wait_here(trace):
        return None
    given = late_arithmetic.looked_at(args)
    made = late_arithmetic.made_of(trace, function, given)
    for each in filter(is_unread, given if made is not None else ()):
        is_counter(translator, each.source)  # which is remembered where the function that adds to it has returned
        guard_exact_type(each)
    return made


@question(otherwise=None)
def late_state(trace: Trace, value: Variable) -> Any:
    """A number, or a text, that the trace has not looked at, as one that it need not; None for anything else."""
    return unread_as_late(trace, value)


def unread_as_late(trace: Trace, value: Variable) -> Any:
    """The same, asked by the engine."""
    if (
        not is_unread(value)
        or not late_numbers.may_wait_here(trace)
        or not late_numbers.may_stay_unread(value, (bool, float, int, str))
    ):
        return None
    guard_type(trace, value)
    return late_numbers.kind_of_variable()(late_numbers.same, [value], value.peek_type(), frozenset({trace.line}))


def is_bounded(trace: Trace, number: Variable, bound: int = _BOUND) -> bool:
    """Is the whole number, or its negative, below the bound, and not too large to be divided?

    Those of the state are guarded.
    """
    if is_unread(number):
        return _guards(trace, number, functools.partial(_is_below, bound))
    number = number.realize()
    if not late_numbers.is_late(number):
        return not number.is_python_constant() or _is_below(bound, number.as_python_constant())
    if late_numbers.is_reading(number.function) or late_lists.is_little(number) or state_lists.is_length(number):
        return True
    return number.function in _BOUNDED and all(
        is_bounded(trace, each, bound) for each in number.operands if late_numbers.kind_of(each) is not float
    )


def is_not_zero(trace: Trace, number: Variable) -> bool:
    """Is the number another one than zero?  That is guarded of the state that it is made of."""
    return _is_sign(trace, number, _is_above) or (
        late_numbers.is_late(number) and known_numbers.truth(trace, number) is True
    )


def _is_sign(trace: Trace, number: Variable, holds: Callable[[Any], bool]) -> bool:
    if is_unread(number):
        return _guards(trace, number, holds)
    number = number.realize()
    if not late_numbers.is_late(number):
        symbol = late_numbers.symbol_of(number)
        if symbol is not None:
            return bool(symbol > 0 if holds is _is_above else symbol >= 0)
        return number.is_python_constant() and holds(number.as_python_constant())
    if state_lists.is_length(number):
        return holds is _is_at_least_zero
    operands = sorted(number.operands, key=is_unread)  # what needs no guard comes first
    is_product = number.function in _PRODUCTS and number.kind is int  # of floats one may be zero
    if number.function is late_numbers.same or is_product:
        return all(_is_sign(trace, each, holds) for each in operands)
    if number.function is late_numbers.select:
        return all(_is_sign(trace, each, holds) for each in number.operands[1:])
    if number.function is max and any(_is_sign(trace, each, holds) for each in operands):
        return True
    if number.function not in late_arithmetic.ADDITIONS or not all(
        _is_sign(trace, each, _is_at_least_zero) for each in operands
    ):
        return False
    return holds is _is_at_least_zero or any(_is_sign(trace, each, holds) for each in operands)


def _guards(trace: Trace, number: Variable, holds: Callable[[Any], bool]) -> bool:
    """Does it hold of the number, of the state?  Then it is guarded from now on."""
    found = inputs_at([number.source], trace.compilation)
    if found is None or not holds(*found):
        return False
    install(trace.compilation, (holds, number.source), [number.source], holds, "a number of the state is in a range")
    return True


def _is_below(bound: int, number: Any) -> bool:
    return type(number) in (bool, int) and abs(number) < bound


def _is_above(number: Any) -> bool:
    return type(number) in (int, float) and number > 0


def _is_at_least_zero(number: Any) -> bool:
    return type(number) in (int, float) and number >= 0


late_numbers.state = sys.modules[__name__]
