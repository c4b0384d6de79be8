"""Numbers that are only kept, shown or given back: each is an output of the graph, and Python's once that has run.

To Dynamo such a number is a `LateVariable`: a tensor of the graph, or a function of Python over others.  Arithmetic on
it is noted, and done by generated code behind the graph, with Python's own numbers; so is the reading of a number that
the trace has not looked at, and need not guard: ``self.total += loss.item()``.  Whatever else asks for the number ends
the graph there, as reading it would have done where it stands.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
import types
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import torch

from ..attempt.as_written import is_as_written
from ..attempt.attempt import Bet, Feature, Lifetime
from ..attempt.compilation import Compilation, attempts_now
from ..attempt.skipped_frames import is_resumed
from ..door.question import question
from ..door.tracer import Trace
from ..door.unguarded import PLAIN, can_be_loaded, guard_type
from ..door.variables import Variable, fake_of, is_plain_tensor, is_unbacked, is_unread, tensor_node, type_of
from ..epilogue import queue
from ..epilogue.deferral import constant_of
from ..graph_end.order import Verdict

NUMBERS = (bool, int, float)


class Real:
    """The kind of a number that is a float or a whole number, as the data decides: ``max(self.scale / 2, 1)``."""


OF_NUMBERS = (*NUMBERS, Real)  # the kinds of numbers


class Either:
    """The kind of what may be None, a tensor, a number or a text, as data decides: ``is None`` may be asked."""


class Unbound:
    """The kind of a name that is not bound, as the data decides: nothing may be asked, nor may it be given away."""


class NumberOrTensor:
    """The kind of what is a number of Python's or a tensor, as the data decides (`number_or_tensor`)."""


class Made:
    """The kind of a tensor that Python makes of a list behind the graph: only its `methods` may be called."""


class Filled:
    """The same of a list with a number in it."""


class Single:
    """The same of a tensor of one element."""


TENSORS = (Made, Filled, Single)


ASKED = "the program asks for a number that is read behind the graph"
_MOST_DEPTH = 64  # of numbers that are made of numbers: Dynamo's generator of code calls itself for each
_MOST_WEIGHT = 1 << 9  # of the same: ``t = t * t`` makes twice as many
_MANY = 1 << 6  # of the same: a tensor of the graph takes their place


def _item(tensor: torch.Tensor) -> Any:
    return tensor.item()


_REQUIRES_GRADIENT = torch.zeros((), requires_grad=True)


def _float(tensor: torch.Tensor) -> Any:
    """``float(tensor)`` of one that has required a gradient: torch warns of the first such in a process."""
    float(_REQUIRES_GRADIENT)
    return tensor.item()


def _tolist(tensor: torch.Tensor) -> Any:
    return tensor.tolist()


def select(is_left: bool, left: Any, right: Any) -> Any:
    """The one of the two that the data has decided for."""
    return left if is_left else right


def same(value: Any) -> Any:
    """The value itself: one that the trace has not looked at."""
    return value


def divide(left: Any, right: Any) -> Any:
    """``left / right``, where a guard makes sure that `right` is zero only if nobody uses what it gives."""
    return left / right if right else math.nan


def is_reading(function: Callable[..., Any]) -> bool:
    """Does it read the number of a tensor?"""
    return function is _item or function is _float


class Tensors(Protocol):
    """What stands for a late number in the graph (`number_tensors`, which rests on this module)."""

    def give(self, trace: Trace, number: Variable) -> Any: ...

    def divides(self, trace: Trace, divisor: Variable) -> bool: ...

    def is_filled(self, number: Variable) -> bool: ...

    def calculated(self, function: Any, translator: Any, args: list[Variable], _kwargs: object) -> Any: ...

    def resolved(self, value: Variable) -> Variable: ...

    def supposed(self, trace: Trace, number: Variable) -> bool | None: ...

    def tensor_of(self, trace: Trace, number: Variable) -> Variable: ...

    def collapsed(self, trace: Trace, number: Variable) -> Variable: ...

    def may_expect_false(self, trace: Trace, predicate: Variable) -> bool: ...


class State(Protocol):
    """What is known of numbers that are made of the program's state (`state_numbers`, which rests on this module)."""

    def is_not_zero(self, trace: Trace, number: Variable) -> bool: ...

    def is_bounded(self, trace: Trace, number: Variable, bound: int = ...) -> bool: ...

    def input_of(self, trace: Trace, number: Variable) -> Variable: ...


class Choices(Protocol):
    """What the data chooses from constants (`choices`, which rests on this module)."""

    def collapsed(self, trace: Trace, value: Variable) -> Variable: ...

    def has(self, value: Variable, method: str) -> bool: ...

    def called(self, value: Variable, method: str, args: list[Variable]) -> Variable: ...


class Known(Protocol):
    """What is known before the graph (`known_numbers`, which rests on this module)."""

    def truth(self, trace: Trace, number: Variable) -> bool | None: ...


tensors: Tensors = None  # type: ignore[assignment]  # they put themselves here
state: State = None  # type: ignore[assignment]
known: Known = None  # type: ignore[assignment]
choices: Choices = None  # type: ignore[assignment]
handlers: list[Callable[[Any], None]] = []  # of other modules: each lets functions of Dynamo's take a late number
# The methods without arguments that a late value has, by its kind: what calls one, and the kind of what that gives.
methods: dict[type, dict[str, tuple[Callable[..., Any], type]]] = {}


@dataclass(frozen=True)
class _Applied:
    """What generated code calls behind the graph; where that has failed, on what is missing."""

    function: Callable[..., Any]

    def __call__(self, *operands: Any) -> Any:
        missing = any(operand is queue.MISSING for operand in operands)
        return queue.MISSING if missing else self.function(*operands)


_applied = functools.cache(_Applied)
# Dynamo's names for the slots of Python's types, and for what else looks at a value.
_SLOT = re.compile(r"(nb|sq|mp|tp)_\w+|(bool|hash|repr|str|richcompare)_impl|unpack_var_sequence|next_variable")
LATE = Feature("a number is read behind the graph", Lifetime.CODE)
# Once `LATE` is lost, and nothing else gives the number.
UNTIL_ASKED = Feature("a number is read behind the graph, which ends where the program asks for it", Lifetime.CODE)


@functools.cache
def kind_of_variable() -> Any:
    """`LateVariable`, whose base is Dynamo's; it takes seconds to import."""
    from torch._dynamo.bytecode_transformation import create_call_function
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.misc import GetAttrVariable, StringFormatVariable

    class Truth(ConstantVariable):  # type: ignore[misc]
        """True or False; up to torch 2.14 a branch asks the variable itself."""

        def __bool__(self) -> bool:
            return bool(self.value)

    class LateVariable(StringFormatVariable):  # type: ignore[misc]
        """A number that exists behind the graph: ``function(*operands)``, of Dynamo's variables; or the text of such.

        kind: the type of the number; lines: of the program, where those were read that it is made of.
        To an f-string it is a part of one (`StringFormatVariable`), which is a text that is not made yet.
        """

        # Dynamo looks at all that it finds in a variable when the graph ends.
        _nonvar_fields = {"operands", *VariableTracker._nonvar_fields}
        format_string, sym_kwargs = "{}", types.MappingProxyType[str, Any]({})
        sym_args = property(lambda self: [self])
        __repr__, debug_repr = VariableTracker.__repr__, VariableTracker.debug_repr

        def __init__(
            self, function: Callable[..., Any], operands: list[Variable], kind: type, lines: frozenset[Any], **more: Any
        ) -> None:
            VariableTracker.__init__(self, **more)
            self.origin: Variable = self  # of a list: that of the program
            self.function, self.operands, self.kind, self.lines = function, operands, kind, lines
            late = [each.realize() for each in operands if is_late(each)]
            self.depth: int = 1 + max((each.depth for each in late), default=0)
            self.weight: int = 1 + sum(each.weight for each in late)  # what is used twice counts twice
            self.tensor: Variable = None  # of the graph, once it has one
            self.most: int | None = None  # of a whole number that is read from that tensor: what it is at most

        def python_type(self) -> type:
            return self.kind

        def is_python_constant(self) -> bool:
            return False

        def is_hashable(self) -> bool:
            give_up(self)

        is_python_hashable = get_python_hash = is_hashable

        def as_proxy(self) -> Any:
            if self.kind is NumberOrTensor:
                return tensors.resolved(self).as_proxy()
            return tensors.give(trace_now(), self)

        def asked(self, *_given: Any) -> Any:
            give_up(self)

        def bool_impl(self, translator: Any) -> Any:
            found = True if tensors.is_filled(self) else known.truth(Trace(translator), self)
            if found is None and (found := tensors.supposed(Trace(translator), self)) is None:
                give_up(self)
            return Truth(found)

        nb_bool_impl = bool_impl  # since torch 2.15

        def call_method(self, translator: Any, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
            if self.kind is NumberOrTensor:
                return tensors.resolved(self).call_method(translator, name, args, kwargs)
            is_rounded = name == "__round__" and not kwargs and self.kind is float and len(args) == 1
            if is_rounded and args[0].is_python_constant() and type(args[0].as_python_constant()) is int:
                return LateVariable(round, [self, args[0]], float, self.lines)
            if name in methods.get(self.kind, ()) and not args and not kwargs:
                function, kind = methods[self.kind][name]
                return LateVariable(function, [self], kind, self.lines)
            made = None if kwargs else choices.called(self, name, args)
            return made or give_up(self)

        def var_getattr(self, translator: Any, name: str) -> Any:
            if self.kind is NumberOrTensor:
                return tensors.resolved(self).var_getattr(translator, name)
            if name not in ("__round__", "append", *methods.get(self.kind, ())) and not choices.has(self, name):
                give_up(self)
            return super().var_getattr(translator, name)

        def tp_getattro_impl(self, translator: Any, name: str) -> Any:
            """What `var_getattr` does, since torch 2.15."""
            if self.kind is NumberOrTensor:
                return tensors.resolved(self).tp_getattro_impl(translator, name)
            if name not in ("__round__", "append", *methods.get(self.kind, ())) and not choices.has(self, name):
                give_up(self)
            return GetAttrVariable(self, name)

        def reconstruct(self, codegen: Any) -> None:
            if self.kind is Either and any(map(_is_trained, self.operands)):
                give_up(self)  # eager makes no gradient of it where it is None
            name = codegen.tx.output.install_global_by_id("graphmend_number", _applied(self.function))
            codegen.add_push_null(lambda: codegen.append_output(codegen.create_load_global(name, add=True)))
            for operand in self.operands:
                codegen(operand.source if is_unread(operand) else operand)
            codegen.extend_output(create_call_function(len(self.operands), False))

    for name, _ in inspect.getmembers(VariableTracker, inspect.isfunction):
        if _SLOT.fullmatch(name) and name not in vars(LateVariable):
            setattr(LateVariable, name, LateVariable.asked)  # for which Dynamo raises the program's TypeError
    for add in handlers:
        add(LateVariable)
    return LateVariable


@functools.cache
def kind_of_unbound() -> Any:
    """`UnboundVariable`."""

    class UnboundVariable(kind_of_variable()):  # type: ignore[misc]
        """Such a name, whatever else it may be: its `kind` is `Unbound`."""

        as_proxy = bool_impl = nb_bool_impl = call_method = var_getattr = kind_of_variable().asked
        tp_getattro_impl = reconstruct = as_proxy

    answer_identity(UnboundVariable, refuse_identity)
    return UnboundVariable


def answer_identity(kind: Any, answer: Callable[..., Any]) -> None:
    """Let that function say whether a variable of the kind is the very object, and whether it is another one."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    for function in (operator.is_, operator.is_not):
        for other in all_kinds():
            for key in ((function, kind, other), (function, other, kind)):
                BuiltinVariable.call_function_handler_cache[key] = functools.partial(answer, function)


def refuse_identity(_function: Any, _translator: Any, args: list[Variable], _kwargs: object) -> NoReturn:
    """Nobody is told, of an `Unbound`."""
    give_up(next(each.realize() for each in args if kind_of(each) is Unbound))


def all_kinds() -> list[type]:
    """The kinds of variables that Dynamo has."""
    from torch._dynamo.variables.base import VariableTracker

    found = [VariableTracker]
    for kind in found:
        found += [each for each in kind.__subclasses__() if each not in found]
    return found


def late_variable(function: Callable[..., Any], operands: list[Variable], kind: type) -> Variable:
    """What the function makes of these, behind the graph; one of them is late."""
    lines = frozenset[Any]().union(*(each.lines for each in operands if is_late(each)))
    return kind_of_variable()(function, operands, kind, lines)


def is_deep(operands: Iterable[Variable]) -> bool:
    """Are they made of numbers that are made of numbers, so that a code generator would go too deep, or make much?"""
    late = [each.realize() for each in operands if is_late(each)]
    return any(each.depth >= _MOST_DEPTH for each in late) or sum(each.weight for each in late) >= _MOST_WEIGHT


def collapsed(trace: Trace, operands: list[Variable]) -> list[Variable]:
    """The same numbers; where they are made of many, those of the tensors that stand for them in the graph.

    So a loop may count under a test, ``n = select(p, n + 1, n)``, which uses each number twice.
    """
    if sum(each.weight for each in operands if is_late(each)) < _MANY:
        return operands
    numbers = [tensors.collapsed(trace, each) if is_late(each) else each for each in operands]
    return [choices.collapsed(trace, each) if is_late(each) else each for each in numbers]


def trace_now() -> Trace:
    """The place that Dynamo has come to."""
    return Trace(_attempt().output.current_tx)


def give_up(variable: Variable) -> NoReturn:
    """Trace the frame anew, with the numbers that the variable is made of read as it was written; or end the graph."""
    from torch._dynamo.exc import Unsupported

    attempt = _attempt()
    if not is_first(attempt, variable) and is_resumed(trace_now()):
        raise Unsupported(ASKED)
    lose(attempt, variable.lines, ASKED)


def lose(attempt: Compilation, lines: Iterable[Any], reason: str) -> NoReturn:
    """Trace the frame anew, with the numbers at these lines of the program read in the next way that there is."""
    bets = _on(attempt, LATE, lines) or _on(attempt, UNTIL_ASKED, lines)
    attempt.without(*(bets or [LATE.at(), UNTIL_ASKED.at()]), reason=reason)  # in the whole frame


def without(attempt: Compilation, lines: Iterable[Any], reason: str) -> NoReturn:
    """Trace the frame anew, with the numbers at these lines of the program read as it was written."""
    attempt.without(*(feature.at(line) for line in lines for feature in (LATE, UNTIL_ASKED)), reason=reason)


def is_first(attempt: Compilation, variable: Variable) -> bool:
    """Is one of the numbers that it is made of read behind the graph though other ways are left?"""
    return bool(_on(attempt, LATE, variable.lines))


def _on(attempt: Compilation, feature: Feature, lines: Iterable[Any]) -> list[Bet]:
    return [feature.at(line) for line in lines if attempt.allows(feature, line)]


def _attempt() -> Compilation:
    compilation = attempts_now().current
    assert compilation is not None
    return compilation


def may_stay_unread(variable: Variable, kinds: Collection[object] = NUMBERS) -> bool:
    return variable.peek_type() in kinds and can_be_loaded(variable.source)


def is_late(variable: Variable) -> bool:
    """Is it a late number?"""
    return not is_unread(variable) and hasattr(variable.realize(), "lines")


def may_be_number_or_tensor(variable: Variable) -> bool:
    """Is it a `NumberOrTensor`?"""
    return is_late(variable) and variable.realize().kind is NumberOrTensor


def is_number(variable: Variable) -> bool:
    """Is it a late one, one that the trace need not look at, a constant, or a symbol?"""
    is_known = is_unread(variable) or hasattr(variable, "lines") or variable.is_python_constant()
    return is_known or isinstance(getattr(variable, "sym_num", None), (torch.SymInt, torch.SymFloat))


def symbol_of(variable: Variable) -> torch.SymInt | None:
    """The symbol that it is, of a whole number that is known when the frame begins."""
    found = None if is_unread(variable) else getattr(variable, "sym_num", None)
    return found if isinstance(found, torch.SymInt) and not is_unbacked(found) else None


@question(otherwise=None)
def late(trace: Trace, tensor: Variable, warns: bool = False) -> Any:
    """The number that the tensor () holds, once the graph has run.  warns: as `_float` does?"""
    return late_of(trace, tensor, warns)


def late_of(trace: Trace, tensor: Variable, warns: bool = False) -> Variable:
    """The same, of the statement at hand."""
    dtype = _dtype(tensor)
    kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
    expect_end(trace)
    return read_from(tensor.realize(), kind, frozenset({trace.line}), _float if warns else _item)


def read_from(tensor: Variable, kind: type, lines: frozenset[Any], reading: Callable[..., Any] = _item) -> Variable:
    """The number that a tensor () of the graph holds."""
    return kind_of_variable()(reading, [tensor], kind, lines)


@question(otherwise=False)
def may_be_selected(trace: Trace, left: Variable, right: Variable) -> bool:
    """Are both numbers, or both texts, which generated code can load, and may the choice wait for the graph's end?"""
    return may_be_chosen(trace, left, right)


def may_be_chosen(trace: Trace, left: Variable, right: Variable) -> bool:
    """The same, of the statement at hand."""
    is_plain = may_wait_here(trace) and _is_plain(left) and _is_plain(right)
    kinds = {kind_of(left), kind_of(right)}
    if is_plain and (len(kinds) == 1 or kinds <= {float, int, Real}):
        return True
    return may_wait_here(trace) and type(None) in kinds and all(map(_may_be_either, (left, right)))


def _may_be_either(value: Variable) -> bool:
    """Is it None, a number, a text, or a tensor?"""
    if is_unread(value):
        return may_stay_unread(value, (*NUMBERS, str))
    value = value.realize()
    if value.is_tensor():
        return is_plain_tensor(value)
    return value.is_constant_none() or (is_number(value) and kind_of(value) in (*OF_NUMBERS, str, Either))


@question(otherwise=False)
def may_be_unbound(trace: Trace) -> bool:
    """May the statement at hand leave it to the end of the graph whether a name is bound?"""
    return may_wait_here(trace)


@question(otherwise=None)
def unbound(trace: Trace) -> Any:
    """What stands for a name that may not be bound: whoever asks has the frame traced anew."""
    expect_end(trace)
    return kind_of_unbound()(select, [], Unbound, frozenset({trace.line}))


@question(otherwise=None)
def selected(trace: Trace, predicate: Variable, left: Variable, right: Variable) -> Any:
    """What Python has once the graph has run: `left` where the predicate, a tensor () of bool, holds, else `right`."""
    return chosen(trace, predicate, left, right)


def chosen(trace: Trace, predicate: Variable, left: Variable, right: Variable) -> Variable:
    """The same, of the statement at hand."""
    given = [each if is_unread(each) else each.realize() for each in (left, right)]
    for each in filter(is_unread, given):
        guard_type(trace, each)
    given = collapsed(trace, given)
    lines = frozenset({trace.line}).union(*(each.lines for each in given if is_late(each)))
    expect_end(trace)
    kinds = {*map(kind_of, given)}
    kind = kinds.pop() if len(kinds) == 1 else Real if kinds <= {float, int, Real} else Either
    return kind_of_variable()(select, [predicate.realize(), *given], kind, lines)


def _is_trained(value: Variable) -> bool:
    return not is_unread(value) and value.is_tensor() and fake_of(value).requires_grad


def _is_plain(value: Variable) -> bool:
    if is_unread(value):
        return may_stay_unread(value, PLAIN)
    if not hasattr(value.realize(), "lines") and value.is_python_constant():
        return type(value.as_python_constant()) in PLAIN
    return is_number(value.realize()) and kind_of(value) not in (NumberOrTensor, Unbound)


def kind_of(value: Variable) -> type:
    """Its type, also of one that the trace has not looked at; or `Real`."""
    if is_unread(value):
        return value.peek_type()  # type: ignore[no-any-return]
    return getattr(value.realize(), "kind", None) if is_late(value) else type_of(value)  # type: ignore[return-value]


def may_wait_here(trace: Trace) -> bool:
    """May a number of the statement at hand wait for the end of the graph?"""
    return _may_wait(trace) and trace.compilation.allows(LATE, trace.line)


def _may_wait(trace: Trace) -> bool:
    return not (trace.compilation.is_saved or trace.is_in_a_body or is_as_written(trace))


@question(otherwise=False)
def may_wait_until_asked(trace: Trace, tensor: Variable) -> bool:
    """May the number of the tensor, of one element, wait until the program asks for it, and the graph end there?"""
    compilation = trace.compilation
    is_open = compilation.allows(UNTIL_ASKED, trace.line) and not compilation.allows(LATE, trace.line)
    is_size = not _dtype(tensor).is_floating_point and _dtype(tensor) is not torch.bool  # it may be one
    return is_open and not (is_size or compilation.one_graph) and _may_wait(trace)


@question(otherwise=None)
def late_list(trace: Trace, tensor: Variable) -> Any:
    """What ``tolist()`` makes of the tensor, once the graph has run."""
    expect_end(trace)
    return kind_of_variable()(_tolist, [tensor.realize()], list, frozenset({trace.line}))


def expect_end(trace: Trace) -> None:
    """A number is made that exists behind the graph."""
    from ..attempt.restart import expect_success_of  # which rests on modules beside this one

    expect_success_of(trace.compilation)
    trace.compilation.judge(Verdict.LATE, _judge)


def _judge(compilation: Compilation, _module: object) -> None:
    """Does the graph end where the program gives such a number to what Dynamo cannot trace?"""
    from torch._dynamo.variables.base import VariableTracker

    output = compilation.output
    lines: set[Any] = set()
    if output.compile_subgraph_reason.graph_break:
        VariableTracker.visit(lambda part: lines.update(getattr(part, "lines", ())), [*output.root_tx.stack])
    if bets := _on(compilation, LATE, lines):
        compilation.without(*bets, reason="a break is given a number that is read behind the graph")


@question(otherwise=False)
def may_be_late(trace: Trace, tensor: Variable, is_shown: bool = False) -> bool:
    """May the number of the tensor, of one element, wait for the end of the graph?

    A whole number that is not only shown may become a symbol of the graph, as it may be a size.
    """
    dtype = _dtype(tensor)
    is_asked = is_shown or dtype is torch.bool or dtype.is_floating_point
    return is_asked and not dtype.is_complex and may_wait_here(trace)


@question(otherwise=False)
def is_late_number(_trace: Trace, value: Variable) -> bool:
    """Is it a number that exists behind the graph, or a list of such?"""
    return is_late(value)


@question(otherwise=False)
def has_text(_trace: Trace, value: Variable) -> bool:
    """Is it a late number, and none that may be a tensor?  That may be written to before its text is made."""
    kind = kind_of(value) if is_late(value) else list
    return kind not in (Either, NumberOrTensor, Unbound, list) or (kind is Either and not may_be_tensor(value))


def may_be_tensor(value: Variable) -> bool:
    """May such a value be a tensor?"""
    value = value if is_unread(value) else value.realize()
    if is_late(value):
        is_either = kind_of(value) in (Either, NumberOrTensor) and value.function is select
        return is_either and any(map(may_be_tensor, value.operands[1:]))
    return not is_unread(value) and bool(value.is_tensor())


def is_late_list(value: Variable) -> bool:
    """Is it such a list?"""
    return hasattr(value.realize(), "lines") and type_of(value) is list


@question(otherwise=None)
def function_of(trace: Trace, number: Variable) -> Any:
    """What generated code calls for it."""
    return constant_of(trace, _applied(number.realize().function), "graphmend_number")


def _dtype(tensor: Variable) -> torch.dtype:
    dtype: torch.dtype = tensor_node(tensor).meta["example_value"].dtype
    return dtype
