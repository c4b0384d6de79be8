"""Texts of numbers that are read behind the graph: they are made there as well, by what Python makes them with.

So ``", ".join(f"{value:.3f}" for value in values)`` is a `LateVariable` of the kind `str`.  A format that might not
suit a number (``"%d" % nan``) is tried on others of its type while tracing, and left as it was written.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..door import counters
from ..door.tracer import is_caught
from ..door.unguarded import guard_type
from ..door.variables import Variable, answer_before, is_unread
from . import late_numbers
from .late_numbers import LAZIES, Real, is_late, kind_of, late_variable, may_stay_unread

# Numbers and texts of each type that a format may not suit.
_EXAMPLES: dict[type, tuple[Any, Any, Any]] = {
    float: (0.0, -math.inf, math.nan),
    int: (0, -1, 10**30),
    bool: (False, True, True),
    str: ("", "{", "%"),
    Real: (0, -math.inf, 10**30),
}


def _joined(separator: str, *parts: str) -> str:
    return separator.join(parts)


def _percent(text: str, *values: Any) -> str:
    return text % values


def _formatted(value: Any, how: str) -> str:
    return format(value, how)


def made_of(function: Callable[..., Any], operands: Sequence[Variable]) -> Variable:
    """The text that the function makes of these; None where it might fail."""
    given = [each if is_unread(each) and may_stay_unread(each, (*_EXAMPLES,)) else each.realize() for each in operands]
    examples = [*map(_examples_of, given)]
    if any(each is None for each in examples) or late_numbers.is_deep(given) or is_caught(late_numbers.trace_now()):
        return None
    try:
        results = [function(*example) for example in zip(*examples, strict=True)]
    except Exception:
        return None
    if not all(type(result) is str for result in results):
        return None
    for each in filter(is_unread, given):
        guard_type(late_numbers.trace_now(), each)
    return late_variable(function, given, str)


def _examples_of(operand: Variable) -> tuple[Any, Any, Any] | None:
    """Three that it may be; None of what is neither a number nor a text, nor a constant."""
    if not is_unread(operand) and not is_late(operand) and operand.is_python_constant():
        return (operand.as_python_constant(),) * 3
    return _EXAMPLES.get(kind_of(operand)) if late_numbers.is_number(operand) else None


def _refuse_contents(given: Variable) -> None:
    """Dynamo makes the text of a container, or of an object, behind the graph, as that was before the frame stored."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.base import VariableTracker

    if is_unread(given) and given.peek_type() in _EXAMPLES:
        return

    given, output = given.realize(), InstructionTranslator.current_tx().output
    if given.is_python_constant():  # Dynamo looks at all that it holds
        return

    def look(variable: Variable) -> None:
        if is_late(variable):
            late_numbers.give_up(variable.realize())
        if variable is not given and not is_unread(variable) and late_numbers.symbol_of(variable) is not None:
            counters.leave(output, "a text is made of what holds a counter")

    VariableTracker.visit(look, [given, *output.side_effects.store_attr_mutations.get(given, {}).values()])


def add_handlers(kind: Any) -> None:
    """Let Dynamo's operations on texts take a late one, and those that make texts a late number."""
    from torch._dynamo.variables import lazy
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lists import TupleVariable
    from torch._dynamo.variables.misc import StringFormatVariable

    lazies = [getattr(lazy, name) for name in LAZIES if hasattr(lazy, name)]
    handlers = BuiltinVariable.call_function_handler_cache
    for shown in (str, repr):
        handlers[shown, kind] = functools.partial(_asked, shown)
    for how in (ConstantVariable, *lazies):
        handlers[format, kind, how] = functools.partial(_asked, _formatted)
    answer_before(operator.mod, ConstantVariable, TupleVariable, _of_several)
    others = (kind, ConstantVariable, *lazies)
    for function, made in ((operator.add, operator.add), (operator.iadd, operator.add), (operator.mod, _percent)):
        for key in [*((function, kind, other) for other in others), *((function, other, kind) for other in others[1:])]:
            handlers[key] = functools.partial(_of_two, made, handlers[key])
    _let_join(ConstantVariable)
    _let_format(StringFormatVariable)


def _asked(function: Any, _translator: Any, args: list[Variable], _kwargs: object) -> Any:
    return made_of(function, args) or late_numbers.give_up(args[0])


def _of_two(function: Any, otherwise: Any, translator: Any, args: list[Variable], kwargs: Any) -> Any:
    """``text + text``, ``"%.3f" % number``."""
    if kind_of(args[0]) is not str:
        return otherwise(translator, args, kwargs)
    return made_of(function, args) or late_numbers.give_up(_first_late(args))


def _of_several(_function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Any], kwargs: Any) -> Any:
    """``"%d of %.3f" % (count, value)``."""
    text, values = args
    if text.python_type() is str and any(map(is_late, values.items)):
        return made_of(_percent, [text, *values.items]) or late_numbers.give_up(_first_late(values.items))
    return otherwise()(translator, args, kwargs)


def _first_late(values: Iterable[Variable]) -> Variable:
    return next(filter(is_late, values)).realize()


def _let_join(kind: Any) -> None:
    """``", ".join(texts)``."""
    from torch._dynamo.variables.lists import TupleVariable

    otherwise = kind.call_method

    @functools.wraps(otherwise)
    def call_method(text: Any, translator: Any, name: str, args: list[Variable], kwargs: Any) -> Any:
        if name != "join" or len(args) != 1 or kwargs or text.python_type() is not str or is_unread(args[0]):
            return otherwise(text, translator, name, args, kwargs)
        parts = _parts_of(translator, args[0].realize())
        if parts is None:
            return otherwise(text, translator, name, args, kwargs)
        if not any(map(is_late, parts)):  # a generator is gone through once
            return otherwise(text, translator, name, [TupleVariable(parts)], kwargs)
        return made_of(_joined, [text, *parts]) or late_numbers.give_up(_first_late(parts))

    kind.call_method = call_method


def _parts_of(translator: Any, given: Variable) -> list[Variable] | None:
    """The items of a list or a tuple, and what a generator gives; None of anything else."""
    from torch._dynamo.variables import constant

    kind = type(given).__name__
    if kind in ("ListVariable", "TupleVariable"):
        return [*given.items]
    if kind == "LocalGeneratorObjectVariable":
        unpack = getattr(constant, "unpack_iterable", lambda at, each: each.force_unpack_var_sequence(at))
        return [*unpack(translator, given)]
    return None


def _let_format(kind: Any) -> None:
    """An f-string, and ``str.format``."""
    otherwise = kind.create.__func__

    def create(of: Any, *given: Any) -> Any:
        text, args, kwargs = given[-3:]  # behind the translator, since torch 2.15
        late = [each for each in (*args, *kwargs.values()) if is_late(each)]
        if late:
            from torch._dynamo.variables.constant import ConstantVariable

            made = None if kwargs else made_of(str.format, [ConstantVariable.create(text), *args])
            return made or late_numbers.give_up(late[0].realize())
        for each in (*args, *kwargs.values()):
            _refuse_contents(each)
        return otherwise(of, *given)

    kind.create = classmethod(functools.wraps(otherwise)(create))
