"""Arithmetic on numbers that exist behind the graph: what Dynamo's builtins make of a late number is another one.

Only what cannot fail, whatever the numbers are, and gives a number of a type that is known.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from ..door.own_code import OWN_FILES
from ..door.question import at_connection
from ..door.tracer import Trace
from ..door.unguarded import guard_exact_type, guard_type
from ..door.variables import Variable, is_unread, unread_kinds
from . import bounds, choices, known_numbers, late_numbers
from .late_numbers import (
    NUMBERS,
    OF_NUMBERS,
    TENSORS,
    Either,
    NumberOrTensor,
    Real,
    Unbound,
    divide,
    give_up,
    is_deep,
    is_late,
    is_number,
    is_reading,
    kind_of,
    late_variable,
    may_stay_unread,
    select,
    symbol_of,
)

# What does not fail on any numbers.  A division does not where it is of floats, by what is not 0.
_PLAIN = (operator.add, operator.sub, operator.mul, operator.iadd, operator.isub, operator.imul)
_DIVISIONS = (operator.truediv, operator.itruediv)
_COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
_OF_TWO = (*_PLAIN, *_DIVISIONS, *_COMPARISONS, min, max)
# They may fail, or give another kind of number for another number.
_LEFT = (
    *(operator.pow, operator.ipow, operator.mod, operator.imod, operator.floordiv, operator.ifloordiv, divmod),
    *(operator.and_, operator.iand, operator.or_, operator.ior, operator.xor, operator.ixor),
    *(operator.lshift, operator.ilshift, operator.rshift, operator.irshift),
)
_OF_TRUTHS = (operator.and_, operator.or_)  # as Dynamo joins the answers for ``state in (...)``
ADDITIONS = (operator.add, operator.iadd)
_LITTLE = 1 << 256  # a float may be greater
REMAINDERS = (*bounds.REMAINDERS, operator.floordiv, operator.ifloordiv)
_OF_FLOATS = (math.isnan, math.isinf, math.isfinite, math.fabs, math.radians, math.degrees, math.atan, math.tanh)
# The least and the greatest number for which they do not fail; what is no number is given back.
_DOMAINS = {
    math.exp: (-math.inf, 709.0),
    math.sqrt: (0.0, math.inf),
    **dict.fromkeys((math.log, math.log2, math.log10), (sys.float_info.min, math.inf)),
    **dict.fromkeys((math.sin, math.cos, math.tan), (-sys.float_info.max, sys.float_info.max)),
}
_OF_ONE = (abs, bool, float, int, round, operator.neg, operator.pos, operator.not_)


def add_handlers(kind: Any) -> None:
    """Let Dynamo's builtins of numbers take a late one."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable

    others = (kind, ConstantVariable, *unread_kinds(), SymNodeVariable)
    handlers = BuiltinVariable.call_function_handler_cache
    for function in _OF_TWO:
        for one, other in [*((kind, other) for other in others), *((other, kind) for other in others[1:])]:
            handlers[function, one, other] = functools.partial(_computed, function)
    late_numbers.answer_identity(kind, _identified)
    for function in (operator.is_, operator.is_not):
        for unread in unread_kinds():
            for key in ((function, unread, ConstantVariable), (function, ConstantVariable, unread)):
                handlers[key] = functools.partial(_is_none, function)
    for function in _LEFT:
        for one, other in [*((kind, other) for other in others), *((other, kind) for other in others[1:])]:
            handlers[function, one, other] = functools.partial(_divided, function)
    for of_one in _OF_ONE:
        handlers[of_one, kind] = functools.partial(_computed, of_one)
    for places in (ConstantVariable, *unread_kinds()):
        handlers[round, kind, places] = _rounded
    handlers[type, kind] = _type
    _let_slices_ask()
    for other in late_numbers.all_kinds():
        handlers[operator.getitem, other, kind] = _looked_up
        if not issubclass(other, TensorVariable):
            handlers[operator.getitem, other, TensorVariable] = functools.partial(_taken_at, other)
        handlers[isinstance, kind, other] = functools.partial(_is_instance, isinstance)


def _looked_up(translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """``names[number]``: Dynamo takes the number for a constant, which it is in each call in which it is the same.

    In a tensor it may be a symbol.
    """
    from torch._dynamo.variables.builtin import BuiltinVariable

    held = args[0].realize()
    if (chosen := choices.item(translator, held, args[1])) is not None:
        return chosen
    place = _of_table(args[1]) if held.is_tensor() else known_numbers.constant_of(Trace(translator), args[1])
    return BuiltinVariable(operator.getitem).call_function(translator, [held, place or give_up(args[1])], {})


def _taken_at(kind: Any, translator: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
    """``self.experts[gate.argmax()]``: a tensor of one whole number is a place in a list, as the number is.

    kind: Dynamo's class for what is looked into.
    """
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.tensor import TensorVariable

    held, place = (each.realize() for each in args)
    found = choices.item(translator, held, choices.as_number(translator, held, place))
    if found is not None:
        return found
    otherwise = BuiltinVariable._make_handler(operator.getitem, [kind, TensorVariable], bool(kwargs))
    return otherwise(translator, args, kwargs)


def _let_slices_ask() -> None:
    """``names[:number]``: Dynamo raises the program's TypeError."""
    from torch._dynamo.variables.lists import SliceVariable

    otherwise = SliceVariable.__init__

    @functools.wraps(otherwise)
    def make(part: Any, items: Any, *given: Any, **named: Any) -> None:
        ends = [_of_table(each) or give_up(each.realize()) if is_late(each) else each for each in items]
        otherwise(part, ends, *given, **named)

    SliceVariable.__init__ = make


def _of_table(number: Variable) -> Variable:
    """The constant for a number of a table, of which there are few; None of any other: it is to have a symbol."""
    is_of_table = known_numbers.is_looked_up(number.realize())
    return known_numbers.constant_of(late_numbers.trace_now(), number) if is_of_table else None


@at_connection
@functools.cache
def watch() -> None:
    """Let Dynamo's functions of torch, to which it counts those of `math`, take a late number, from now on."""
    from torch._dynamo.variables import lazy
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    otherwise = TorchInGraphFunctionVariable.call_function

    @functools.wraps(otherwise)
    def call(called: Variable, translator: Any, args: Any, kwargs: dict[str, Variable]) -> Any:
        args, kwargs = [_as_tensor(each) for each in args], {key: _as_tensor(each) for key, each in kwargs.items()}
        for each in (*args, *kwargs.values()):
            if is_late(each) and kind_of(each) in (Either, Unbound, *TENSORS):
                give_up(each.realize())  # ``torch.is_tensor`` asks nobody
        if known_numbers.is_of_math(called.value) and not kwargs:
            made = _of_math(called.value, translator, [each.realize() for each in args])
            if made is not None:
                return made
        return otherwise(called, translator, args, kwargs)

    TorchInGraphFunctionVariable.call_function = call
    if hasattr(lazy, "ComputedLazyCache"):  # since torch 2.15
        lazy.ComputedLazyCache.realize = _late_if_an_operand_is(lazy.ComputedLazyCache.realize)


def _late_if_an_operand_is(realize: Callable[[Any], None]) -> Callable[[Any], None]:
    """Dynamo calculates with numbers that the trace has not looked at; one that it looks at it takes for a constant."""

    @functools.wraps(realize)
    def look_at(sum_: Any) -> None:
        if not any(hasattr(each.realize(), "lines") for each in sum_.lazy_vars):
            realize(sum_)
            return
        from torch._dynamo.symbolic_convert import InstructionTranslator
        from torch._dynamo.variables.builtin import BuiltinVariable

        operands = [each.realize() for each in sum_.args]
        sum_.vt = BuiltinVariable(sum_.op).call_function(InstructionTranslator.current_tx(), operands, {})

    return look_at


def _of_math(function: Any, translator: Any, args: list[Variable]) -> Any:
    """``math.exp(number)``; None where Dynamo is to make it."""
    if not any(map(is_late, args)):
        return known_numbers.of_symbols(function, translator, args)
    if function in (*_OF_FLOATS, *_DOMAINS):
        return _computed(function, translator, args, {})
    return known_numbers.applied(Trace(translator), function, args)


def _as_tensor(value: Variable) -> Variable:
    return late_numbers.tensors.resolved(value.realize()) if late_numbers.may_be_number_or_tensor(value) else value


def _type(translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """``type(x)``: of a `Real` only this package's own code, which asks whether it is something else, is told."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    if (
        args[0].kind in (Real, Either, NumberOrTensor, Unbound, *TENSORS)
        and translator.f_code.co_filename not in OWN_FILES
    ):
        give_up(args[0])
    return BuiltinVariable(type).call_type(translator, args[0])


def _is_instance(function: Any, translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """``isinstance(x, float)``: of a `Real` only where the answer is the same for a float and a whole number."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable

    is_own = translator.f_code.co_filename in OWN_FILES
    if args[0].kind in (Either, Unbound) or (args[0].kind in (NumberOrTensor, *TENSORS) and not is_own):
        give_up(args[0])
    if args[0].kind is not Real:
        return BuiltinVariable(function).call_isinstance(translator, *args)
    given = args[1].realize()
    kinds = given.as_python_constant() if given.is_python_constant() else float
    if isinstance(1, kinds) is not isinstance(1.0, kinds):
        give_up(args[0])
    return ConstantVariable.create(isinstance(1, kinds))


def _divided(function: Any, translator: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
    """``self.step % 10``: by a constant it does not fail."""
    given = looked_at(args)
    if (chosen := choices.applied(function, given)) is not None:
        return chosen
    by = args[1].realize()
    if function in REMAINDERS and by.is_python_constant() and by.as_python_constant():
        return _computed(function, translator, [args[0], by], kwargs)
    if function in _OF_TRUTHS and all(map(_is_truth_of_choice, given)):
        return late_variable(function, given, bool)
    known = known_numbers.applied(Trace(translator), function, given)
    if known is not None:
        return known
    if function in (operator.pow, operator.ipow) and by.is_python_constant() and is_late(args[0]):
        exponent = by.as_python_constant()
        _look_at(args[0])
        if bounds.may_be_raised(args[0], exponent):
            kinds = {type(real(1) ** exponent) for real in _numbers_of(kind_of(args[0]))}
            return late_variable(function, given, kinds.pop() if len(kinds) == 1 else Real)
    give_up(next(arg for arg in args if is_late(arg)))


def _is_truth_of_choice(given: Variable) -> bool:
    """Is it a truth, made of what the data chooses from constants: ``state in ("large", "small")``?

    Of other numbers Python asks as well whether they are the very ones, as of what is no number.
    """
    if not is_late(given):
        return not is_unread(given) and given.is_python_constant() and type(given.as_python_constant()) is bool
    joined = given.realize().function in _OF_TRUTHS and all(map(_is_truth_of_choice, given.realize().operands))
    return kind_of(given) is bool and (joined or choices.is_choice(given))


def looked_at(args: list[Variable]) -> list[Variable]:
    """The arguments; the trace looks at each but the numbers that it need not look at."""
    return [each if is_unread(each) and may_stay_unread(each) else each.realize() for each in args]


def _look_at(number: Variable) -> None:
    """Let the trace look at the numbers of the state that it is made of, which are guarded then."""
    for operand in number.realize().operands:
        if is_unread(operand):
            operand.realize()
        elif is_late(operand):
            _look_at(operand)


def _identified(function: Any, translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """Is it the same object?  A number may be one of those that it has been chosen from, and there is one True."""
    from torch._dynamo.variables.constant import ConstantVariable

    one, other = (arg.realize() for arg in args)
    kinds = {kind_of(one), kind_of(other)}
    if Unbound in kinds:
        give_up(one if kind_of(one) is Unbound else other)
    if Either in kinds:
        return _is_none_late(function, one, other)
    if one is not other and kinds <= {*OF_NUMBERS, str}:  # what is chosen of numbers is the very one
        give_up(one if hasattr(one, "lines") else other)
    return ConstantVariable.create(function(one, other))


def _is_none_late(function: Any, one: Variable, other: Variable) -> Any:
    """``best is None``, of what may be None: True or False behind the graph."""
    from torch._dynamo.variables.constant import ConstantVariable

    chosen, asked = (one, other) if kind_of(one) is Either else (other, one)
    is_of_two = chosen.function is select and not any(kind_of(side) is Either for side in chosen.operands[1:])
    if not asked.is_constant_none() or not is_of_two:
        give_up(chosen)
    predicate, *sides = chosen.operands
    answers = [ConstantVariable.create((kind_of(side) is type(None)) is (function is operator.is_)) for side in sides]
    return late_numbers.kind_of_variable()(select, [predicate, *answers], bool, chosen.lines)


def _is_none(function: Any, translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """``self.last is None``: of a number or a text its type says that it is not, and the trace need not look at it."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable

    for one, other in (args, args[::-1]):
        if is_unread(one) and other.is_constant_none() and may_stay_unread(one, (*NUMBERS, str)):
            guard_exact_type(one)
            return ConstantVariable.create(function is operator.is_not)
    return BuiltinVariable(function).call_function(translator, [arg.realize() for arg in args], {})


def _rounded(translator: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
    return args[0].call_method(translator, "__round__", [args[1].realize()], kwargs)


def _computed(function: Any, translator: Any, args: list[Variable], _kwargs: dict[str, Variable]) -> Any:
    """The late number that the function makes of these; read as it was written where it might fail."""
    trace = Trace(translator)
    given = looked_at(args)
    if any(not is_unread(each) and each.is_tensor() for each in given):
        return late_numbers.tensors.calculated(function, translator, given, {})
    if len(given) == 1 and function is kind_of(given[0]):
        return given[0]
    if len(given) == 1 and function is float and issubclass(kind_of(given[0]), float):  # of numpy
        return late_variable(float, given, float)
    made = made_of(trace, function, given) or choices.applied(function, given)
    if made is None:
        give_up(next(filter(is_late, given)))
    return made


def made_of(trace: Trace, function: Any, given: list[Variable]) -> Any:
    """The late number that the function makes of these numbers; None where it might fail on others."""
    kinds, given = [*map(kind_of, given)], late_numbers.collapsed(trace, given)
    if is_deep(given):
        return None
    if not {*kinds} <= {*OF_NUMBERS} or not all(map(is_number, given)):
        return None
    if not _suits(trace, function, given, kinds):
        return known_numbers.applied(trace, function, given)
    for each in filter(is_unread, given):
        guard_type(trace, each)
    lines = [each.lines for each in given if is_late(each)] or [frozenset({trace.line})]
    if function in ADDITIONS and kinds == [int, int]:
        given = _collected(function, given)
    is_division = function in _DIVISIONS and not bounds.is_above_zero(given[1])
    if is_division and not _is_never_zero(given[1]) and not late_numbers.state.is_not_zero(trace, given[1]):
        if not late_numbers.tensors.divides(trace, given[1]):
            return None
        function = divide
    return late_numbers.kind_of_variable()(function, given, _kind_of_result(function, kinds), frozenset().union(*lines))


def _numbers_of(kind: type) -> tuple[type, ...]:
    return (int, float) if kind is Real else (kind,)


def _kind_of_result(function: Any, kinds: list[type]) -> type:
    if function in (min, max):
        return kinds[0] if kinds[0] is kinds[1] else Real
    found = {type(function(*[real(1) if each is Real else each(1) for each in kinds])) for real in (int, float)}
    return found.pop() if len(found) == 1 else Real


def _collected(function: Any, given: list[Variable]) -> list[Variable]:
    """``n + 1 + 1`` of whole numbers as ``n + 2``: a loop may add a thousand times."""
    from torch._dynamo.variables.constant import ConstantVariable

    number, added = given
    if not is_late(number) or number.function is not function or is_unread(added) or not added.is_python_constant():
        return given
    first, before = number.operands
    if kind_of(first) is not int or is_unread(before) or not before.is_python_constant():
        return given
    if type(before.as_python_constant()) is not int:
        return given
    return [first, ConstantVariable.create(before.as_python_constant() + added.as_python_constant())]


def _is_little(operand: Variable) -> bool:
    """Can it be calculated with as a float?  A constant, and what is chosen of constants, may be too great a number."""
    if is_unread(operand) or operand.is_python_constant():
        value = None if is_unread(operand) else operand.as_python_constant()
        return type(value) is not int or abs(value) < _LITTLE
    number = operand.realize()
    if not is_late(number) or is_reading(number.function) or number.kind is float or bounds.are_known(number):
        return True
    if number.function in (operator.mul, operator.imul, operator.pow, operator.ipow):
        return False
    return all(_is_little(each) for each in number.operands[int(number.function is select) :])


def _is_never_zero(variable: Variable) -> bool:
    """Is it a constant, or a symbol, by which one may divide?  Of a symbol that is guarded."""
    symbol = symbol_of(variable)
    if symbol is not None:
        return bool(symbol != 0)
    return not is_unread(variable) and variable.is_python_constant() and bool(variable.as_python_constant())


def _suits(trace: Trace, function: Any, given: list[Variable], kinds: list[type]) -> bool:
    """Can the function not fail on these, whatever the late ones are?  And it gives a number of one type."""
    if function in (min, max):
        return kinds[0] is kinds[1] or bool not in kinds
    if function in _DIVISIONS:
        return float in kinds or all(late_numbers.state.is_bounded(trace, each) for each in given)
    if function in _PLAIN and len({*kinds}) + (Real in kinds) > 1 and not all(map(_is_little, given)):
        return False  # a float, and a whole number that is greater than any
    if function in _OF_FLOATS:
        return kinds in ([bool], [float]) or late_numbers.state.is_bounded(trace, given[0])
    if function in _DOMAINS:
        (low, high), (least, most) = bounds.limits_of(given[0]), _DOMAINS[function]
        is_little = kinds == [float] or late_numbers.state.is_bounded(trace, given[0])
        return is_little and bool not in kinds and least <= low and high <= most
    if function in (int, round):
        return (float not in kinds and Real not in kinds) or bounds.is_finite(given[0])  # of infinity there is none
    return function is not float or kinds in ([bool], [float]) or (kinds == [int] and _is_little(given[0]))
