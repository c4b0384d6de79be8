"""Objects of ours that stand for those of a library while Dynamo traces, and exist in no other way.

Where Dynamo calls a class or a function of the program, a rule may answer, with an object of a class that it has made
for that.  To the program the object is one of the library's; where it would tell that it is not, or leave the trace,
the rule's retreat is called, which has the frame traced anew without.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from ..attempt.compilation import Compilation, compilation_of
from ..epilogue.deferral import constant_of
from .question import at_connection
from .tracer import Trace, covered_trace_at
from .variables import Variable, is_unread, type_of

Retreat = Callable[[Compilation, str], NoReturn]


class Called(Enum):
    """What Dynamo may be about to call, by its class of variables for it, and where that keeps what it is."""

    CLASS = ("user_defined", "UserDefinedClassVariable", "value")
    FUNCTION = ("functions", "UserFunctionVariable", "fn")
    SKIPPED = ("functions", "SkipFunctionVariable", "value")  # one that Dynamo would not trace


class Call:
    """A call that Dynamo is about to make: of `called`, with variables."""

    def __init__(self, trace: Trace, called: Any, args: Sequence[Variable], options: dict[str, Variable]) -> None:
        self.trace, self.called, self.args, self.options = trace, called, [*args], dict(options)

    def variable(self, value: object) -> Variable:
        """Dynamo's variable for what is called, or for a constant; a variable as it is."""
        from torch._dynamo.variables.base import VariableTracker

        if isinstance(value, VariableTracker):
            return value
        if value is self.called:
            return constant_of(self.trace, value, "graphmend_called")
        return VariableTracker.build(self.trace.translator, value)

    def inlined(self, function: object, *given: object) -> Variable:
        """What a traced function gives; given: variables, or constants."""
        return self.variable(function).call_function(self.trace.translator, [*map(self.variable, given)], {})

    def stand_in(self, kind: type, given: list[Variable], retreat: Retreat) -> Variable:
        """A new object of the class, which is made in the trace alone."""
        _retreats[kind] = retreat
        made = constant_of(self.trace, kind, "graphmend_stand_in")
        making = self.trace.compilation.of(_Making)
        making.is_on = True
        try:
            found = made.call_function(self.trace.translator, given, {})
        finally:
            making.is_on = False
        of_found: Any = type(found)
        found.__class__ = _kind_of_stand_in(of_found)
        return found


_retreats: dict[type, Retreat] = {}  # by the classes


@dataclass
class _Making:
    """is_on: is a stand-in being made?  Then Dynamo asks for its type by itself."""

    is_on: bool = False


def answer_calls(of: Called, is_such: Callable[[Any], bool], answer: Callable[[Call], Variable]) -> None:
    """Let `answer` give what a call gives where `is_such` says so of what is called; or None, and Dynamo makes it."""
    import torch._dynamo.variables

    module, name, holder = of.value
    kind = getattr(getattr(torch._dynamo.variables, module), name)
    otherwise = kind.call_function

    @functools.wraps(otherwise)
    def call_function(called: Any, translator: Any, args: Sequence[Variable], options: dict[str, Variable]) -> Any:
        trace = covered_trace_at(translator) if is_such(getattr(called, holder)) else None
        made = None if trace is None else answer(Call(trace, getattr(called, holder), args, options))
        return otherwise(called, translator, args, options) if made is None else made

    kind.call_function = call_function


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo answers ``type(...)``, from now on."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    otherwise = BuiltinVariable.call_type

    @functools.wraps(otherwise)
    def call_type(builtin: Any, translator: Any, asked: Variable) -> Any:
        if not is_unread(asked):
            _refuse_type(translator, type_of(asked))
        return otherwise(builtin, translator, asked)

    BuiltinVariable.call_type = call_type


def _refuse_type(translator: Any, kind: type) -> None:
    if kind in _retreats:
        compilation = compilation_of(translator.output)
        if not compilation.of(_Making).is_on:
            _retreats[kind](compilation, "the type of a stand-in is asked for")


@functools.cache
def _kind_of_stand_in(kind: Hashable) -> Any:
    """Dynamo's class for an object of the program, but for what tells the class of one."""

    class StandInVariable(kind):  # type: ignore[misc, valid-type]
        """A stand-in."""

        def var_getattr(self, translator: Any, name: str) -> Any:
            if name == "__class__":
                _refuse_type(translator, type_of(self))
            return super().var_getattr(translator, name)

    return StandInVariable


def kept_inside(compilation: Compilation, retreat: Retreat) -> Variable:
    """A value that must not leave the trace: generated code that would make it, or what holds it, is not generated."""
    return _kind_of_kept()(compilation, retreat)


@functools.cache
def _kind_of_kept() -> Any:
    """`KeptInsideVariable`, whose base is Dynamo's; it takes seconds to import."""
    from torch._dynamo.variables.base import VariableTracker

    class KeptInsideVariable(VariableTracker):  # type: ignore[misc]
        """Such a value."""

        _nonvar_fields = {"compilation", "retreat", *VariableTracker._nonvar_fields}

        def __init__(self, compilation: Compilation, retreat: Retreat, **more: Any) -> None:
            super().__init__(**more)
            self.compilation, self.retreat = compilation, retreat

        def reconstruct(self, _codegen: Any) -> None:
            self.retreat(self.compilation, "a stand-in would leave the trace")

    return KeptInsideVariable
