"""Texts of numbers that are read behind the graph: they are made there as well, by what Python makes them with.

So ``", ".join(f"{value:.3f}" for value in values)`` is a `LateVariable` of the kind `str`.  A format that might not
suit a number (``"%d" % nan``) is tried on others of its type while tracing, and left as it was written.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..door import counters
from ..door.question import at_connection
from ..door.tracer import covered_trace_at, is_caught, is_covered, trace_at
from ..door.unguarded import guard_type
from ..door.variables import Variable, answer_before, is_unread, unread_kinds
from . import late_numbers
from .late_numbers import Real, is_late, kind_of, late_variable, may_stay_unread

# Numbers and texts of each type that a format may not suit.
_EXAMPLES: dict[type, tuple[Any, Any, Any]] = {
    float: (0.0, -math.inf, math.nan),
    int: (0, -1, 10**30),
    bool: (False, True, True),
    str: ("", "{", "%"),
    Real: (0, -math.inf, 10**30),
}
_MUTABLE = ("ConstDictVariable", "DefaultDictVariable", "DequeVariable", "ListVariable", "SetVariable")
_CONTAINERS = {"ConstDictVariable": dict, "ListVariable": list, "TupleVariable": tuple}  # as Dynamo names them


def _joined(separator: str, *parts: str) -> str:
    return separator.join(parts)


def _percent(text: str, *values: Any) -> str:
    return text % values


def _formatted(value: Any, how: str) -> str:
    return format(value, how)


@dataclass(frozen=True)
class _Format:
    """``text.format(*values)``, of which the last have names."""

    places: int
    names: tuple[str, ...]

    def __call__(self, text: str, *values: Any) -> str:
        return text.format(*values[: self.places], **dict(zip(self.names, values[self.places :], strict=True)))


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
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.base import VariableTracker

    if is_unread(given) and given.peek_type() in _EXAMPLES:
        return

    translator = InstructionTranslator.current_tx()
    given, output = given.realize(), translator.output
    if given.is_python_constant():  # Dynamo looks at all that it holds
        return
    is_mended = covered_trace_at(translator) is not None

    def look(variable: Variable) -> None:
        if is_late(variable):
            late_numbers.give_up(variable.realize())
        if is_unread(variable):
            return
        if is_mended and _is_changed(output, variable):
            raise Unsupported("a text is made of what the frame has changed")
        if variable is not given and late_numbers.symbol_of(variable) is not None:
            counters.leave(output, "a text is made of what holds a counter")

    VariableTracker.visit(look, [given, *output.side_effects.store_attr_mutations.get(given, {}).values()])


def _is_changed(output: Any, variable: Variable) -> bool:
    """Is it a list, a dict or a set of the program that the frame has changed?  That is done once the graph has run."""
    is_mutable = variable.mutation_type is not None and variable.source is not None
    return is_mutable and type(variable).__name__ in _MUTABLE and bool(output.side_effects.is_modified(variable))


@at_connection
def watch() -> None:
    """Stand where Dynamo makes a text of a tuple by a format, from now on."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lists import TupleVariable

    answer_before(operator.mod, ConstantVariable, TupleVariable, _of_several)
    if not hasattr(BuiltinVariable.call_str, "__wrapped__") and not _asks_objects():
        BuiltinVariable.call_str = _by_its_repr(BuiltinVariable.call_str)


@functools.cache
def _asks_objects() -> bool:
    """Does Dynamo itself ask an object for its text, as since torch 2.15?"""
    from torch._dynamo.variables.builtin import BuiltinVariable

    return "generic_str" in inspect.unwrap(BuiltinVariable.call_str).__code__.co_names


def _by_its_repr(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """``str(meter)`` of a class with a `__repr__` alone: up to torch 2.14 Dynamo makes a constant of what it gives."""

    @functools.wraps(otherwise)
    def call_str(function: Any, translator: Any, given: Variable) -> Any:
        from torch._dynamo.variables.builtin import BuiltinVariable
        from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

        if isinstance(given, UserDefinedObjectVariable) and is_covered(translator):
            kind = type(given.value)
            if not _has_own(kind, "__str__") and _has_own(kind, "__repr__"):
                return BuiltinVariable(repr).call_function(translator, [given], {})
        return otherwise(function, translator, given)

    return call_str


def add_handlers(kind: Any) -> None:
    """Let Dynamo's operations on texts take a late one, and those that make texts a late number."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.dicts import ConstDictVariable
    from torch._dynamo.variables.lists import ListVariable, TupleVariable
    from torch._dynamo.variables.misc import StringFormatVariable

    handlers = BuiltinVariable.call_function_handler_cache
    for shown in (str, repr):
        handlers[shown, kind] = functools.partial(_asked, shown)
    for how in (ConstantVariable, *unread_kinds()):
        handlers[format, kind, how] = functools.partial(_asked, _formatted)
    for shown in (str, repr):
        for container in (ConstDictVariable, ListVariable, TupleVariable):
            answer_before(shown, container, None, _of_container)
    others = (kind, ConstantVariable, *unread_kinds())
    for function, made in ((operator.add, operator.add), (operator.iadd, operator.add), (operator.mod, _percent)):
        for key in [*((function, kind, other) for other in others), *((function, other, kind) for other in others[1:])]:
            handlers[key] = functools.partial(_of_two, made, handlers[key])
    _let_join(ConstantVariable)
    _let_format(StringFormatVariable)


class _Shown:
    """The text of a container: its items are given as operands, in order; shape: where each of them stands in it."""

    def __init__(self, how: Callable[[Any], str], shape: Any) -> None:
        self._how, self._shape = how, shape

    def __call__(self, *items: Any) -> str:
        return self._how(self._built(self._shape, items))

    def _built(self, shape: Any, items: Sequence[Any]) -> Any:
        if isinstance(shape, int):
            return items[shape]
        kind, keys, parts = shape
        built = [self._built(part, items) for part in parts]
        return kind(built) if keys is None else dict(zip(keys, built, strict=True))


def _own_text(value: Variable) -> Variable:
    """The text of an object by its own `__str__`, if the trace has changed any: Dynamo makes it of what was before."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    if is_unread(value) or not isinstance(value.realize(), UserDefinedObjectVariable):
        return value
    kind, translator = type(value.realize().value), InstructionTranslator.current_tx().output.current_tx
    if not (_has_own(kind, "__str__") or _has_own(kind, "__repr__")) or _has_own(kind, "__format__"):
        return value
    effects = translator.output.side_effects
    if not is_covered(translator) or not any(map(effects.is_modified, [*effects.id_to_variable.values()])):
        return value
    return BuiltinVariable(str).call_function(translator, [value.realize()], {})


def _has_own(kind: type, method: str) -> bool:
    return getattr(kind, method) is not getattr(object, method)


def _of_container(how: Any, otherwise: Callable[[], Any], translator: Any, args: list[Any], kwargs: Any) -> Any:
    """``str(found)`` of a dict, a list or a tuple that the trace has made, and that holds late numbers."""
    items: list[Variable] = []
    shape = _shape_of(args[0].realize(), items)
    if shape is None or not any(map(is_late, items)) or is_caught(late_numbers.trace_now()):
        return otherwise()(translator, args, kwargs)
    for each in filter(is_unread, items):
        guard_type(late_numbers.trace_now(), each)
    return late_variable(_Shown(how, shape), items, str)


def _shape_of(given: Variable, items: list[Variable]) -> Any:
    """What `_Shown` has of it, of which the items are added to those; None of anything else than plain containers."""
    if is_unread(given) or is_late(given) or given.is_python_constant():
        is_plain = _examples_of(given) is not None and (not is_unread(given) or may_stay_unread(given, (*_EXAMPLES,)))
        items.append(given)
        return len(items) - 1 if is_plain else None
    kind = _CONTAINERS.get(type(given).__name__)
    if kind is None or given.source is not None or given.python_type() is not kind:
        return None
    keys, held = None, given.items
    if kind is dict:
        if not all(key.vt.is_python_constant() for key in held):
            return None
        keys, held = [key.vt.as_python_constant() for key in held], held.values()
    parts = [_shape_of(each if is_unread(each) else each.realize(), items) for each in held]
    return None if any(part is None for part in parts) else (kind, keys, parts)


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
    if text.python_type() is not str:
        return otherwise()(translator, args, kwargs)
    if any(map(is_late, values.items)):
        return made_of(_percent, [text, *values.items]) or late_numbers.give_up(_first_late(values.items))
    is_open = any(_is_counter(translator, each) for each in values.items)
    trace = trace_at(translator) if is_open else None  # of which Dynamo makes no text by a format
    if trace is None or not late_numbers.may_wait_here(trace):
        return otherwise()(translator, args, kwargs)
    made = made_of(_percent, [text, *values.items])
    if made is None:
        return otherwise()(translator, args, kwargs)
    made.lines = frozenset({trace.line})
    return made


def _is_counter(translator: Any, value: Variable) -> bool:
    """Is it a number that counts calls, as a symbol of the graph or as one that the trace has not looked at?"""
    if not is_unread(value):
        return late_numbers.symbol_of(value) is not None
    return value.peek_type() in late_numbers.NUMBERS and counters.is_counter(translator, value.source)


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
        args = args if _asks_objects() else [_own_text(each) for each in args]
        late = [each for each in (*args, *kwargs.values()) if is_late(each)]
        if late:
            from torch._dynamo.variables.constant import ConstantVariable

            shown = [ConstantVariable.create(text), *args, *kwargs.values()]
            made = made_of(_Format(len(args), (*kwargs,)), shown)
            return made or late_numbers.give_up(late[0].realize())
        for each in (*args, *kwargs.values()):
            _refuse_contents(each)
        return otherwise(of, *given[:-3], text, args, kwargs)

    kind.create = classmethod(functools.wraps(otherwise)(create))
