"""Late numbers as tensors of the graph: for a branch that one decides, and for a tensor that is calculated with one.

Python calculates with floats as float64 does, so each number is a tensor () of that dtype, and each operation on it one
of the graph.  Only what is equal to the bit is taken: sums, products, quotients, comparisons, ``abs``, ``min`` and
``max`` of floats, on a CPU; and where one meets a tensor, float32 or float64 with dimensions, of which torch itself
would have rounded the number to that dtype.  A quotient fails in Python where the divisor is zero: that it is not is a
guard of the graph, see `divides`.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch

from ..attempt.compilation import Compilation, is_break_or_failure
from ..door import counters
from ..door.question import question
from ..door.tracer import Trace
from ..door.variables import Variable, fake_of, is_plain_tensor, is_unread, tensor_node, tuple_of
from ..facts import ranges
from ..facts.operations import name_of
from ..facts.selections import ASKING_FOR_SOME
from ..graph_end.order import Verdict
from ..region import Regions
from ..shelter import taken_at
from . import (
    arrays,
    bounds,
    capture,
    captured_tensors,
    known_numbers,
    late_lists,
    late_numbers,
    python_operator,
)
from .captured_tensors import call
from .late_numbers import Real

DTYPES = {float: torch.float64, bool: torch.bool, int: torch.int64, Real: torch.float64}
_OF_TENSORS = (torch.float32, torch.float64)
CALCULATED: dict[Any, Callable[..., Any]] = {
    operator.add: operator.add,
    operator.iadd: operator.add,
    operator.sub: operator.sub,
    operator.isub: operator.sub,
    operator.mul: operator.mul,
    operator.imul: operator.mul,
    operator.truediv: operator.truediv,
    operator.itruediv: operator.truediv,
    late_numbers.divide: operator.truediv,
    operator.neg: operator.neg,
    abs: torch.abs,
    math.fabs: torch.abs,
    math.isnan: torch.isnan,
    math.isinf: torch.isinf,
    math.isfinite: torch.isfinite,
}
_MOST = (1 << 63) - 1  # of a whole number in a tensor
_BOUND = 1 << 53  # of one of the state: as many as there are of them in a program can be added up in a tensor
_OF_GRAPH = (late_numbers.select, late_lists.listed, late_lists.counted)
_SUMS = (operator.add, operator.iadd, operator.sub, operator.isub, operator.neg, abs)
_COMPARED = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
# What makes of floats that differ such as mostly differ.
_KEEPING_APART = frozenset({*_SUMS, operator.mul, operator.imul, operator.mod, operator.imod, operator.truediv, float})
_JOINING = {operator.and_: torch.logical_and, operator.or_: torch.logical_or}
_OF_WHOLE = frozenset({*_COMPARED, *_SUMS, operator.mul, operator.imul, min, max})
# Methods and functions that may be given a number as such a tensor, beside a tensor that comes first.
_TAKING = frozenset({"add", "sub", "mul", "div", "masked_fill", "where"})
# They too, if the number is not zero: of a zero and a bound of the other sign the kernels take different ones.
_CLAMPING = frozenset({"clamp", "clip", "clamp_min", "clamp_max"})

_guards: list[Callable[[torch.Tensor], bool]] = []  # the one that `guard_with` was given


@dataclass
class _Numbers:
    """The tensors that stand for numbers in an attempt.

    given: those that operations of the program are given, with the lines of the numbers; nonzero: that are never zero.
    failing: predicates, tensors () of bool, that are true where a region divides by zero, say: guards behind it.
    symbols: those that operations of the program are given, by the tensors that they are read from; lines: of these.
    are_handed_in: are whole numbers of the state inputs of the graph, which the trace does not look at?
    """

    given: dict[torch.fx.Node, frozenset[Any]] = field(default_factory=dict)
    nonzero: set[torch.fx.Node] = field(default_factory=set)
    failing: list[Variable] = field(default_factory=list)
    symbols: dict[torch.fx.Node, Variable] = field(default_factory=dict)
    lines: set[Any] = field(default_factory=set)
    are_handed_in: bool = False


class _NoTensorError(Exception):
    """The number has no tensor that is equal to the bit."""


def tensor_of(trace: Trace, number: Variable) -> Variable:
    """The tensor () of the graph that is the late number; None where it would not be equal to the bit."""
    try:
        return _tensor_of(trace, number)
    except _NoTensorError:
        return None


def collapsed(trace: Trace, number: Variable) -> Variable:
    """The number of the tensor that is the late number; the number itself where it has none."""
    numbers = trace.compilation.of(_Numbers)
    numbers.are_handed_in = True
    try:
        made = tensor_of(trace, number) if number.kind in (bool, float, int) else None
    finally:
        numbers.are_handed_in = False
    if made is None:
        return number
    read = late_numbers.read_from(made, number.kind, number.lines)
    read.tensor = made
    read.most = _most(trace, number) if number.kind is int else None
    return read


def whole_of(trace: Trace, number: Variable, kind: type) -> Variable:
    """The same of a number that may also be a constant, or one of the state, which is an input of the graph then."""
    try:
        if is_unread(number) and kind is float:
            return late_numbers.state.input_of(trace, number)
        return _whole(trace, number, kind)
    except _NoTensorError:
        return None


def _tensor_of(trace: Trace, number: Variable) -> Variable:
    made = getattr(number, "tensor", None)
    if made is None:
        made = _made_before(trace, number)
    if made is None:
        try:
            made = _made(trace, number)
        except _NoTensorError:
            made = _made_by_python(trace, number)
    number.tensor = made
    return made


def _made_before(trace: Trace, number: Variable) -> Variable:
    """The tensor of a float that Python calculates before the graph; None of any other number."""
    is_float = isinstance(number.kind, type) and issubclass(number.kind, float)
    return known_numbers.tensor_of(trace, number) if is_float else None


def _made_by_python(trace: Trace, number: Variable) -> Variable:
    """The tensor of what Python calculates in the graph."""
    if number.kind not in (float, bool) or late_numbers.is_reading(number.function):
        raise _NoTensorError
    try:
        formula, tensors = python_operator.formula_of(number, functools.partial(_of_state, trace))
    except python_operator.NoFormulaError:
        raise _NoTensorError from None
    if any(fake_of(tensor).device.type != "cpu" or not is_plain_tensor(tensor) for tensor in tensors):
        raise _NoTensorError
    read = [tensor.as_proxy() for tensor in tensors]
    return call(trace, python_operator.calculated(), formula, read, DTYPES[number.kind])


def _of_list(trace: Trace, number: Variable) -> Variable:
    """How many numbers are in a list; of a list whether there is one."""
    if number.function is late_lists.counted:
        counts = [call(trace, torch.Tensor.to, _whole(trace, each, bool), torch.int64) for each in number.operands]
        return functools.reduce(functools.partial(call, trace, torch.add), counts)
    are_in = late_lists.predicates_of(number)
    if are_in is None:
        raise _NoTensorError  # Python knows it
    return functools.reduce(functools.partial(call, trace, torch.logical_or), [_part(trace, each) for each in are_in])


def _of_state(trace: Trace, number: Variable) -> Variable:
    """The tensor () of a whole number of the state; None where that has none."""
    return _whole(trace, number, int) if _most(trace, number) <= _MOST else None


def _made(trace: Trace, number: Variable) -> Variable:
    function, operands, kind = number.function, number.operands, number.kind
    if function in (late_lists.listed, late_lists.counted):
        return _of_list(trace, number)
    if kind not in DTYPES:
        raise _NoTensorError
    if late_numbers.is_reading(function):
        (tensor,) = operands
        if fake_of(tensor).device.type != "cpu" or not is_plain_tensor(tensor) or fake_of(tensor).dtype is torch.uint64:
            raise _NoTensorError
        return call(trace, torch.Tensor.to, tensor, DTYPES[kind])
    if (kind is int and _most(trace, number) > _MOST) or (kind is Real and not _is_exact(number)):
        raise _NoTensorError  # Python's whole numbers have no end
    if function is late_numbers.select:
        predicate, *sides = operands
        return call(trace, torch.where, predicate, *(_whole(trace, each, kind) for each in sides))
    if function is late_numbers.same:
        return _whole(trace, operands[0], kind)
    kinds = {late_numbers.kind_of(each) for each in operands}
    if function in _JOINING and kinds == {bool}:
        return call(trace, _JOINING[function], *(_whole(trace, each, bool) for each in operands))
    if function in (bool, operator.not_) and kinds == {bool}:
        (part,) = [_part(trace, each) for each in operands]
        return part if function is bool else call(trace, torch.logical_not, part)
    is_whole = kinds == {int} and function in _OF_WHOLE and all(_fits(trace, each) for each in operands)
    if kinds != {float} and not is_whole and not (kinds <= {float, int, Real} and all(map(_is_exact, operands))):
        raise _NoTensorError
    return _operated(trace, number)


def _operated(trace: Trace, number: Variable) -> Variable:
    """What an operator makes of numbers of which each has a tensor, or is a constant."""
    function, operands, kind = number.function, number.operands, number.kind
    parts = [_part(trace, each) for each in operands]
    if not any(part.is_tensor() for part in parts):  # of the state alone: it is for the graph to calculate
        parts[0] = _whole(trace, operands[0], late_numbers.kind_of(operands[0]))
    if function in (min, max):
        one, other = (_whole(trace, each, kind) for each in operands)
        is_other = call(trace, torch.lt if function is min else torch.gt, other, one)
        return call(trace, torch.where, is_other, other, one)
    if function in _COMPARED:
        return call(trace, function, *parts)
    if function is float:
        return parts[0]
    if function not in CALCULATED:
        raise _NoTensorError
    return call(trace, CALCULATED[function], *parts)


def _is_of_graph(number: Variable) -> bool:
    """Is it made of a number of the graph, and not of the program's state alone?"""
    if late_numbers.is_reading(number.function) or number.function in _OF_GRAPH:
        return True
    return any(late_numbers.is_late(each) and _is_of_graph(each.realize()) for each in number.operands)


def _is_exact(operand: Variable) -> bool:
    """Is it a float, or a constant whole number that a float can be, or one of these?"""
    kind = late_numbers.kind_of(operand)
    if kind is float:
        return True
    if kind is Real and (operand.function is late_numbers.select or operand.function in (min, max)):
        return all(map(_is_exact, operand.operands[-2:]))
    if is_unread(operand) or not operand.is_python_constant():
        return False
    return bool(abs(operand.as_python_constant()) < 1 << 53)


def _fits(trace: Trace, operand: Variable) -> bool:
    """Is it a whole number that a tensor can hold?  Python's have no end."""
    is_read = late_numbers.is_late(operand) and late_numbers.is_reading(operand.function)
    return is_read or _most(trace, operand) <= _MOST


def _most(trace: Trace, operand: Variable) -> int:
    """What a whole number, or its negative, is at most; of what is not known more than a tensor can hold.

    Of the state, that it is no more is a guard from now on.
    """
    if not late_numbers.is_late(operand):
        if late_numbers.kind_of(operand) is not int:
            return _MOST + 1
        if not is_unread(operand) and operand.is_python_constant():
            return abs(operand.as_python_constant())  # type: ignore[no-any-return]
        return _BOUND if _is_within(trace, operand, _BOUND) else _MOST + 1
    function, parts = operand.function, operand.operands
    if operand.most is not None:
        return operand.most  # type: ignore[no-any-return]
    if late_numbers.is_reading(function):
        dtype = fake_of(parts[0]).dtype
        return _MOST + 1 if dtype.is_floating_point else 1 if dtype is torch.bool else -torch.iinfo(dtype).min or _MOST
    if function is late_lists.counted:
        return len(parts)
    if function is late_numbers.select:
        return max(_most(trace, each) for each in parts[1:])
    if function in (operator.mul, operator.imul):
        return math.prod(_most(trace, each) for each in parts)
    is_sum = function in _SUMS or function in (min, max, late_numbers.same)
    return sum(_most(trace, each) for each in parts) if is_sum else _MOST + 1


def _is_within(trace: Trace, operand: Variable, bound: int) -> bool:
    """Is the whole number, or its negative, below the bound?  It is not known before the frame begins, and guarded."""
    if is_unread(operand):
        return late_numbers.state.is_bounded(trace, operand, bound)
    symbol = late_numbers.symbol_of(operand)
    return symbol is not None and bool(symbol < bound) and bool(symbol > -bound)


def _part(trace: Trace, operand: Variable) -> Variable:
    """An operand of a calculation: a tensor, or a number that the trace knows."""
    if late_numbers.is_late(operand):
        return _tensor_of(trace, operand)
    if late_numbers.kind_of(operand) is not float:
        is_input = is_unread(operand) and operand.peek_type() is int and trace.compilation.of(_Numbers).are_handed_in
        return late_numbers.state.input_of(trace, operand) if is_input else operand.realize()
    changes = is_unread(operand) and any(
        asks(trace.translator, operand.source) for asks in (counters.is_counter, counters.is_assigned)
    )
    return late_numbers.state.input_of(trace, operand) if changes else _input(trace, operand.realize())


def _input(trace: Trace, symbol: Variable) -> Variable:
    """The tensor () that a symbol of a float is read from, as Dynamo hands a float in; a constant as it is."""
    if symbol.is_python_constant() or symbol.is_tensor():
        return symbol
    node = symbol.as_proxy().node
    read = node if node.op == "placeholder" else node.args[0]
    if getattr(read, "op", "") != "placeholder" or len(node.args) > 1:  # an expression of such symbols
        made = known_numbers.tensor_of(trace, late_numbers.late_variable(late_numbers.same, [symbol], float))
        if made is None:
            raise _NoTensorError
        return made
    return call(trace, torch.clone, torch.fx.Proxy(read, trace.output.current_tracer))


def _whole(trace: Trace, operand: Variable, kind: type) -> Variable:
    """The same as a tensor in any case."""
    part = _part(trace, operand)
    if part.is_tensor():
        return part
    if kind is int and late_numbers.symbol_of(part) is not None:
        return call(trace, torch.full, (), part, dtype=torch.int64)
    if not part.is_python_constant() or (type(part.as_python_constant()) is not kind and kind is not Real):
        raise _NoTensorError
    return call(trace, torch.full, (), part.as_python_constant(), dtype=DTYPES[kind])


def is_filled(number: Variable) -> bool:
    """Is it a list with a number in it, whatever the data is?"""
    return late_lists.is_list(number) and late_lists.predicates_of(number) is None


def supposed(trace: Trace, number: Variable) -> bool | None:
    """The truth of a list, or of a test whether there is anything in it, where there is: which is a guard then.

    So too of a test whether a float that was drawn is one certain number.  None of another number, and where no guard
    may be.
    """
    answer = number.function is operator.ne if _is_drawn_apart(number) else _of_filled(number)
    made = None if answer is None else tensor_of(trace, number)
    if made is None:
        return None
    fails = call(trace, operator.eq, made, not answer)  # of a length: that it is 0
    return answer if may_expect_false(trace, fails) else None


@question(otherwise=False)
def is_sure(_trace: Trace, test: Variable) -> bool:
    """Is the answer to a test of late numbers the same, whatever the data is, or but for one draw of millions?"""
    number = None if is_unread(test) else test.realize()
    return late_numbers.is_late(number) and (_is_drawn_apart(number) or bounds.truth(number) is not None)


def is_decided(number: Variable) -> bool:
    """Does a test of it need no guard of the graph?  The program's state says what is made of that alone."""
    return number.kind not in DTYPES or not _is_of_graph(number) or bounds.truth(number) is not None


def _is_drawn_apart(number: Variable) -> bool:
    """Is asked whether a float that was drawn is one certain number?"""
    return number.function in (operator.eq, operator.ne) and any(map(_is_drawn, number.operands))


def _is_drawn(operand: Variable) -> bool:
    """Is it a float that torch draws from an interval, or made of one by a sum, say, with a constant that is not 0?"""
    if not late_numbers.is_late(operand):
        return False
    number = operand.realize()
    if late_numbers.is_reading(number.function):
        return ranges.is_drawn_from_many(tensor_node(number.operands[0]))
    drawn = [each for each in number.operands if _is_drawn(each)]
    others = [each for each in number.operands if each not in drawn]
    are_fixed = all(not is_unread(each) and each.is_python_constant() and each.as_python_constant() for each in others)
    return number.kind is float and number.function in _KEEPING_APART and len(drawn) == 1 and are_fixed


def _of_filled(number: Variable) -> bool | None:
    """What a test gives whether there is anything in a list, where there is; None of another one."""
    if number.function in (late_lists.listed, late_lists.counted):
        return True
    first, *others = [each.realize() for each in number.operands] or [None]
    if not late_numbers.is_late(first):
        return None
    if number.function in (bool, operator.not_) and (inner := _of_filled(first)) is not None:
        return inner is (number.function is bool)
    if first.function is not late_lists.counted or len(others) != 1 or not others[0].is_python_constant():
        return None
    asked = number.function, others[0].as_python_constant()
    return next((answer for answer, tests in ASKING_FOR_SOME.items() if asked in tests.items()), None)


def stands_for(trace: Trace, number: Variable) -> bool:
    """Is it a late number, a captured one or one of numpy's, that a tensor of the graph stands for, to the bit?"""
    return not is_unread(number) and not trace.is_in_a_body and _standing_for(trace, number.realize()) is not None


def _standing_for(trace: Trace, number: Variable) -> Variable:
    if arrays.is_array(number):
        return arrays.tensor_of(trace, number)
    if not late_numbers.is_late(number):
        return captured_tensors.tensor_of(trace, number)
    # What is made of the program's state alone is for Python to test, but where a region may not be taken: there a
    # guard would be for what the program does not ask for.
    is_asked = _is_of_graph(number) or trace.compilation.of(Regions).open
    return tensor_of(trace, number) if is_asked else None


@question(otherwise=False)
def has_tensor(trace: Trace, number: Variable) -> bool:
    """The same, asked by traced code."""
    return stands_for(trace, number)


@question(otherwise=None)
def as_tensor(trace: Trace, number: Variable) -> Any:
    """That tensor."""
    return _standing_for(trace, number.realize())


def add_handlers(kind: Any) -> None:
    """Let Dynamo's operators take a tensor and a late number."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.tensor import TensorVariable

    for function in (*CALCULATED, *_COMPARED):
        handler = functools.partial(calculated, function)
        for key in ((function, TensorVariable, kind), (function, kind, TensorVariable)):
            BuiltinVariable.call_function_handler_cache[key] = handler


def calculated(function: Any, translator: Any, args: list[Variable], _kwargs: object) -> Any:
    """``tensor * number``: the number is rounded to the tensor's dtype, as torch does it."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    trace = Trace(translator)
    number = next(each for each in args if hasattr(each, "lines"))
    tensor = next(each for each in args if each is not number)
    if number.kind is int and _may_meet(tensor) and not _is_of_graph(number):
        known = _as_float(trace, number)
        args, number = [known if each is number else each for each in args], known
    is_real = number.kind in (float, Real) or (number.kind is int and _is_of_graph(number))
    is_known = function in (*CALCULATED, *_COMPARED) and is_real and _may_meet(tensor)
    made = tensor_of(trace, number) if is_known else None
    if made is None:
        symbol = _symbol(trace, number)
        if symbol is None:
            late_numbers.give_up(number)
        given = [symbol if each is number else each for each in args]
        return BuiltinVariable(function).call_function(translator, given, {})
    rounded = call(trace, torch.Tensor.to, made, fake_of(tensor).dtype)
    if function in (operator.truediv, operator.itruediv) and args[0] is number:  # so torch calculates it
        args, function, number = [rounded, call(trace, torch.Tensor.reciprocal, tensor)], operator.mul, rounded
    return BuiltinVariable(function).call_function(
        translator, [rounded if each is number else each for each in args], {}
    )


def _as_float(trace: Trace, number: Variable) -> Variable:
    """A whole number that is known before the graph, as the float that it is rounded by; itself where that has none."""
    is_exact = known_numbers.is_below(trace, number, _BOUND)
    return late_numbers.late_variable(float, [number], float) if is_exact else number


def _may_meet(tensor: Variable) -> bool:
    return is_plain_tensor(tensor) and _suits(fake_of(tensor))


def _suits(fake: torch.Tensor) -> bool:
    return fake.device.type == "cpu" and fake.dtype in _OF_TENSORS


def give(trace: Trace, number: Variable) -> Any:
    """The proxy of its tensor, for an operation of the program; judged at the end of the graph.

    Of a float that is known before the graph, that of a symbol: Dynamo has such for floats that are inputs.
    """
    symbol = _symbol(trace, number)
    if symbol is not None:
        return symbol.as_proxy()
    may_be = number.kind is float and late_numbers.is_first(trace.compilation, number)
    made = tensor_of(trace, number) if may_be else None
    if made is None:
        late_numbers.give_up(number)
    given = call(trace, torch.Tensor.clone, made)  # nothing of ours uses it
    numbers, node = trace.compilation.of(_Numbers), tensor_node(given)
    numbers.given[node] = number.lines
    if _cannot_be_zero(number):
        numbers.nonzero.add(node)
    trace.compilation.judge(Verdict.LATE_GIVEN, _judge)
    trace.compilation.at_end(_judge_end)
    return given.as_proxy()


def _symbol(trace: Trace, number: Variable) -> Variable:
    """The symbol of a float that is known before the graph; None of any other number."""
    known = _made_before(trace, number)
    if known is None:
        return None
    numbers, node = trace.compilation.of(_Numbers), tensor_node(known)
    numbers.lines.update(number.lines)
    trace.compilation.at_end(_judge_end)
    if node not in numbers.symbols:
        numbers.symbols[node] = capture.symbol_of_input(trace, known)
    return numbers.symbols[node]


def _judge(compilation: Compilation, _module: object) -> None:
    """Are such tensors given to nothing that takes them for another thing than a number?"""
    given, nonzero = compilation.of(_Numbers).given, compilation.of(_Numbers).nonzero
    for node, lines in given.items():
        if not all(_takes(user, given.keys(), node in nonzero) for user in node.users):
            _without(compilation, lines)


def _cannot_be_zero(number: Variable) -> bool:
    """Is it ``max(s, c)`` with a constant above zero, or ``-`` of such?"""
    if not late_numbers.is_late(number):
        return False
    if bounds.is_above_zero(number):
        return True
    if number.function is operator.neg:
        return _cannot_be_zero(number.operands[0])
    constants = [each for each in number.operands if not is_unread(each) and each.is_python_constant()]
    return number.function is max and any(each.as_python_constant() > 0 for each in constants)


def _takes(user: torch.fx.Node, numbers: Collection[torch.fx.Node], is_nonzero: bool) -> bool:
    """Is it one of `_TAKING`, and the operand that it is about a tensor with dimensions, and no number?"""
    name = name_of(user).rstrip("_")
    if not user.op.startswith("call") or name not in (_TAKING | _CLAMPING if is_nonzero else _TAKING):
        return False
    operands = [each for each in user.args[1:] if each not in numbers] if name == "where" else [*user.args]
    first = operands[0] if operands else None
    fake = first.meta.get("example_value") if isinstance(first, torch.fx.Node) and first not in numbers else None
    return isinstance(fake, torch.Tensor) and _suits(fake) and fake.dim() > 0


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Did an operation that was given such a tensor fail, or end the graph?"""
    numbers = compilation.of(_Numbers)
    lines = frozenset(numbers.lines).union(*numbers.given.values())
    if lines and is_break_or_failure(error):
        _without(compilation, lines)


def _without(compilation: Compilation, lines: frozenset[Any]) -> None:
    late_numbers.lose(compilation, lines, "an operation is given a number that is read behind the graph")


def divides(trace: Trace, divisor: Variable) -> bool:
    """May the program divide by the number?  That it is not zero is a guard of the graph from now on."""
    made = tensor_of(trace, divisor) if late_numbers.is_late(divisor) and divisor.kind in (float, int) else None
    if made is None:
        return False
    return may_expect_false(trace, call(trace, operator.eq, made, 0))


def may_expect_false(trace: Trace, predicate: Variable) -> bool:
    """Guard that the predicate, a tensor () of bool, is false, where the region at hand is taken; False if none may."""
    if not trace.compilation.of(Regions).open:
        from torch._dynamo.variables.base import VariableTracker

        guard = VariableTracker.build(trace.translator, _guards[0])
        return bool(trace.translator.inline_user_function_return(guard, [predicate], {}).as_python_constant())
    taken = taken_at(trace)
    if taken is None:
        return False
    fails = call(trace, operator.and_, predicate, torch.fx.Proxy(taken, trace.output.current_tracer))
    trace.compilation.of(_Numbers).failing.append(fails)
    return True


def resolved(value: Variable) -> Variable:
    """The tensor that a `NumberOrTensor` is, as a guard says from now on; given up where no guard may."""
    trace = late_numbers.trace_now()
    if not may_expect_false(trace, call(trace, torch.logical_not, value.operands[0])):
        late_numbers.give_up(value)
    return value.operands[1]


_NONE: Any = ()


@question(otherwise=_NONE)
def failing(trace: Trace) -> Any:
    """The predicates of what fails in the regions that have been closed, as a tuple: each is to be guarded now."""
    numbers = trace.compilation.of(_Numbers)
    if trace.compilation.of(Regions).open:
        return ()
    found, numbers.failing = numbers.failing, []
    return tuple_of(found)


def guard_with(guard: Callable[[torch.Tensor], bool]) -> None:
    """Let that function, which is traced, guard that a predicate is false; it gives False where no guard may wait."""
    _guards[:] = [guard]


late_numbers.tensors = sys.modules[__name__]
