"""Numbers that are made of the frame's inputs alone, by functions of Python: ``math.exp(-self.step / 200)``.

They are known before the graph, whatever the data is.  Where a tensor is calculated with one, Python calculates it
before the graph and hands it in; where the program asks for its truth, that is a guard of the frame.  So Dynamo need
not compile for each value that they have.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType
from typing import Any

import torch

from ..attempt.compilation import Compilation
from ..door import counters
from ..door.frame_guards import inputs_at, install, name_of
from ..door.question import at_connection
from ..door.tracer import Trace, is_covered, trace_at
from ..door.unguarded import can_be_loaded
from ..door.variables import Variable, answer_before, is_unbacked, is_unread
from ..facts.writes import example_of
from ..graph_end.order import Change
from . import bounds, late_numbers
from .number_inputs import computed_input

_MOST_PARTS = 256  # of a formula, which guards calculate at each call
_OF_MATH = frozenset(each for each in vars(math).values() if isinstance(each, BuiltinFunctionType))
_REMAINDERS = (operator.mod, operator.imod)
_OF_TWO = (*_REMAINDERS, operator.floordiv, operator.ifloordiv, operator.pow, operator.ipow, divmod)
# What the nodes of a graph call, of numbers of the inputs, and Python does alike.
_OF_OPERATOR = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", "abs")
_IN_PLACE = [name for name in _OF_OPERATOR if hasattr(operator, f"i{name}")]
_IN_GRAPHS: dict[Any, Callable[..., Any]] = {
    **{getattr(operator, name): getattr(operator, name) for name in _OF_OPERATOR},
    **{getattr(operator, f"i{name}"): getattr(operator, name) for name in _IN_PLACE},
    torch.sym_float: float,
    torch.sym_max: max,
    torch.sym_min: min,
}


@dataclass(frozen=True)
class Formula:
    """A number as a function of formulas, of constants, and of what guards find at a source."""

    function: Callable[..., Any]
    operands: tuple[_Part, ...]

    def value(self, found: Mapping[str, Any]) -> Any:
        given = [
            each.value(found) if isinstance(each, Formula) else found[each.name] if isinstance(each, _Found) else each
            for each in self.operands
        ]
        return self.function(*given)


@dataclass(frozen=True)
class _Found:
    name: str


_Part = Formula | _Found | int | float


class _OtherError(Exception):
    """The number is made of more than the inputs, or of too many parts."""


class _Sources(dict[str, Any]):
    """Where guards find what a formula is made of, by the names there."""

    parts = 0

    def count_part(self) -> None:
        """Count a part of the formula; what is used twice counts twice.  Raises `_OtherError` where there are many."""
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise _OtherError


def _text(part: _Part) -> str:
    """A formula as a text that no other one has: 1 and True are equal, and two functions are called ``pow``."""
    if isinstance(part, Formula):
        return f"{part.function!r} at {id(part.function)}({', '.join(map(_text, part.operands))})"
    return part.name if isinstance(part, _Found) else repr(part)


@dataclass(frozen=True)
class _Known:
    """A number that is known before the graph: its formula, the sources by their names there, and the number now."""

    formula: Formula
    sources: _Sources
    value: Any

    @property
    def text(self) -> str:
        return _text(self.formula)

    def calculate(self, *values: Any) -> Any:
        """The number, of what there is at the sources."""
        return self.formula.value(dict(zip(self.sources, values, strict=True)))

    def guard(self, trace: Trace, holds: Callable[..., bool], note: str) -> None:
        install(trace.compilation, (note, self.text), [*self.sources.values()], holds, note)


@dataclass
class _Computed:
    """The inputs of the graph that are computed before it, by the text of the formula."""

    found: dict[str, Variable] = field(default_factory=dict)


def truth(trace: Trace, number: Variable) -> bool | None:
    """Is the late number not zero?  None where neither its bounds nor the inputs say it, which is guarded then."""
    known = _known(trace, number)
    if known is None:
        return bounds.truth(number)
    is_true = bool(known.value)
    known.guard(trace, functools.partial(_holds, known, is_true), f"what is made of the state is {is_true}")
    return is_true


def is_below(trace: Trace, number: Variable, bound: int) -> bool:
    """Is the whole number, or its negative, below the bound?  It is a guard from now on."""
    known = _known(trace, number)
    if known is None or not abs(known.value) < bound:
        return False
    known.guard(trace, functools.partial(_is_below, known, bound), f"what is made of the state is below {bound}")
    return True


def constant_of(trace: Trace, number: Variable) -> Variable:
    """The whole number as it is in this call, and by a guard in others; None where the inputs do not say it."""
    from torch._dynamo.variables.constant import ConstantVariable

    known = _known(trace, number)
    if known is None or type(known.value) is not int:
        return None
    known.guard(trace, functools.partial(_is_value, known, known.value), f"what is made of the state is {known.value}")
    return ConstantVariable.create(known.value)


def is_looked_up(number: Variable) -> bool:
    """Is the late number made of one in a list?"""
    parts = [each.realize() for each in number.operands if late_numbers.is_late(each)]
    return number.function is operator.getitem or any(map(is_looked_up, parts))


def applied(trace: Trace, function: Callable[..., Any], operands: list[Variable]) -> Variable:
    """What the function makes of these, as a late number; None where it is made of more than the inputs.

    That it makes a number of that type, and does not fail, is a guard from now on.
    """
    if late_numbers.is_deep(operands) or not late_numbers.may_wait_here(trace):
        return None
    lines = frozenset({trace.line}).union(*(each.lines for each in operands if late_numbers.is_late(each)))
    number = late_numbers.kind_of_variable()(function, [_loaded(trace, each) for each in operands], float, lines)
    known = _known(trace, number)
    if known is None or not known.sources or type(known.value) not in late_numbers.NUMBERS:
        return None
    number.kind = kind = type(known.value)
    known.guard(trace, functools.partial(_is_of_type, known, kind), f"what is made of the state is a {kind.__name__}")
    trace.compilation.change(Change.FLOATS, _forget_unused)
    return number


def tensor_of(trace: Trace, number: Variable) -> Variable:
    """The tensor () of the graph in which it is handed a float that is made of the inputs; None of any other number."""
    known = _known(trace, number)
    if known is None:
        return None
    found = trace.compilation.of(_Computed).found
    if known.text not in found:
        name = f"graphmend_computed_{len(found)}"
        found[known.text] = computed_input(trace, [*known.sources.values()], known.calculate, float, name)
    return found[known.text]


def _known(trace: Trace, number: Variable) -> _Known | None:
    """What the number is made of; None where that is more than the inputs, or much, and where it fails in this call."""
    sources = _Sources()
    try:
        formula = _of_late(number, sources)
    except _OtherError:
        return None
    values = _values_at(trace, sources)
    if values is None:
        return None
    try:
        return _Known(formula, sources, formula.value(values))
    except Exception:  # the program's own, of one of its functions
        return None


def _values_at(trace: Trace, sources: _Sources) -> dict[str, Any] | None:
    """What guards find there in the call at hand, by the names; None where no guard may be relied on."""
    found = inputs_at([*sources.values()], trace.compilation)
    return None if found is None else dict(zip(sources, found, strict=True))


def _loaded(trace: Trace, operand: Variable) -> Variable:
    """A symbol as a number that generated code loads, so that it is no result of the graph; anything else as it is."""
    is_list = is_unread(operand) and operand.peek_type() in (list, tuple)
    if is_list or late_numbers.is_late(operand) or not _is_symbol(operand):
        return operand
    sources = _Sources()
    try:
        part = _operand(operand, sources)
    except _OtherError:
        return operand
    values = _values_at(trace, sources)
    return operand if values is None else _variable_of(trace, part, sources, values)


def _variable_of(trace: Trace, part: _Part, sources: Mapping[str, Any], values: Mapping[str, Any]) -> Variable:
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.lazy import LazyVariableTracker

    if isinstance(part, _Found):
        return LazyVariableTracker.create(values[part.name], sources[part.name])
    if not isinstance(part, Formula):
        return ConstantVariable.create(part)
    operands = [_variable_of(trace, each, sources, values) for each in part.operands]
    return late_numbers.kind_of_variable()(part.function, operands, type(part.value(values)), frozenset({trace.line}))


def _is_symbol(number: Variable) -> bool:
    return isinstance(getattr(number, "sym_num", None), (torch.SymInt, torch.SymFloat))


def is_of_math(function: Any) -> bool:
    """Is it a function of Python's `math`?"""
    try:
        return function in _OF_MATH
    except TypeError:  # it has no hash
        return False


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo applies to numbers of the inputs what it has no symbols for, from now on."""
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.tensor import SymNodeVariable

    for function in (round, *_OF_TWO):
        answer_before(function, SymNodeVariable, SymNodeVariable, _of_floats)
        answer_before(function, SymNodeVariable, ConstantVariable, _of_floats)
        answer_before(function, ConstantVariable, SymNodeVariable, _of_floats)
    late = late_numbers.kind_of_variable()
    for left, right in ((late, None), (late, ConstantVariable), (ConstantVariable, late)):
        answer_before(range, left, right, _counted)


def _counted(
    function: Callable[..., Any], otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any
) -> Any:
    """``range(self.orders[self.step])``: so many steps in each call."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    trace = trace_at(translator)
    given = [constant_of(trace, each) if trace and late_numbers.is_late(each) else each for each in args]
    if trace is None or any(each is None for each in given):
        return otherwise()(translator, args, kwargs)
    return BuiltinVariable(function).call_function(translator, given, kwargs)


def _of_floats(
    function: Callable[..., Any], otherwise: Callable[[], Any], translator: Any, args: list[Variable], kwargs: Any
) -> Any:
    """``self.scale ** 2``, ``round(t, 2)``: of a float; where Python fails, or gives no float, that of this call."""
    is_of_float = any(each.python_type() is float for each in args)
    trace = trace_at(translator) if is_of_float and not kwargs and is_covered(translator) else None
    if trace is None:
        return otherwise()(translator, args, kwargs)
    made = applied(trace, function, args) if all(map(late_numbers.is_number, args)) else None
    if made is not None:
        return made
    is_of_graph = any(_is_symbol(each) and is_unbacked(each.sym_num) for each in args)
    is_remainder = function in _REMAINDERS  # for which what AOTAutograd makes of floats has no operation
    if is_remainder:
        counters.leave(translator.output, "a counter has made a float that PyTorch calculates otherwise with")
    if is_of_graph or (not is_remainder and _gives_a_number(function, args)):
        return otherwise()(translator, args, kwargs)
    return _of_this_call(function, translator, args)


def _gives_a_number(function: Callable[..., Any], args: list[Variable]) -> bool:
    """Does it give one in the call at hand?"""
    try:
        return type(function(*map(_value_now, args))) in late_numbers.NUMBERS
    except Exception:  # the program's own
        return False


def _value_now(number: Variable) -> Any:
    return number.sym_num.node.hint if _is_symbol(number) else number.as_python_constant()


def _of_this_call(function: Callable[..., Any], translator: Any, args: list[Variable]) -> Any:
    """What it gives of the symbols' values, which are guarded."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.constant import ConstantVariable
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    numbers = [ConstantVariable.create(guard_scalar(each.sym_num)) if _is_symbol(each) else each for each in args]
    return BuiltinVariable(function).call_function(translator, numbers, {})


def of_symbols(function: Callable[..., Any], translator: Any, given: list[Variable]) -> Variable:
    """The number that the function makes of symbols in mended code; None for what Dynamo is to do by itself."""
    can_be_traced = is_of_math(function) and hasattr(torch, f"_sym_{function.__name__}")
    is_ours = any(map(_is_symbol, given)) and not can_be_traced and is_covered(translator)
    trace = trace_at(translator) if is_ours and all(map(late_numbers.is_number, given)) else None
    return None if trace is None else applied(trace, function, given)


def _forget_unused(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Tell the compiler of floats that are no inputs of the graph, since only numbers of Python's are made of them.

    Else it has the frame traced anew, to be rid of them.
    """
    from torch._dynamo.symbolic_convert import TensorifyState
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    fakes = map(example_of, module.graph.find_nodes(op="placeholder"))
    read = [memo for fake in fakes if (memo := getattr(fake, "item_memo", None)) is not None]
    used = {str(symbol) for memo in read for symbol in memo.node._expr.free_symbols}
    made = {str(each) for each in compilation.output.shape_env.backed_var_to_val if symbol_is_type(each, SymT.FLOAT)}
    for name in made - used - TensorifyState.force_specializations:
        TensorifyState.specialize(name)
        compilation.undo.callback(TensorifyState.force_specializations.discard, name)


def _of_late(number: Variable, sources: _Sources) -> Formula:
    sources.count_part()
    return Formula(number.function, tuple(_operand(each, sources) for each in number.operands))


def _operand(operand: Variable, sources: _Sources) -> _Part:
    if is_unread(operand):
        return _found(operand.source, sources)
    if late_numbers.is_late(operand):
        return _of_late(operand.realize(), sources)
    if operand.is_python_constant():
        return operand.as_python_constant()  # type: ignore[no-any-return]
    if _is_symbol(operand):
        return _of_node(operand.as_proxy().node, sources)
    raise _OtherError


def _of_node(node: Any, sources: _Sources) -> _Part:
    """What a node of the graph makes of inputs that are numbers; a float is handed in as a tensor."""
    sources.count_part()
    if type(node) in late_numbers.NUMBERS:
        return node  # type: ignore[no-any-return]
    if not isinstance(node, torch.fx.Node):
        raise _OtherError
    is_read = node.op == "call_method" and node.target == "item" and isinstance(node.args[0], torch.fx.Node)
    given = node.args[0] if is_read else node
    if given.op == "placeholder":
        handed = given.meta.get("grapharg")
        is_tensor = handed is None or (isinstance(handed.example, torch.Tensor) and not handed.pass_arg_as_tensor)
        if is_tensor or handed.source is None:
            raise _OtherError
        return _found(handed.source, sources)
    size = _source_of_size(node)
    if size is not None:
        return _found(size, sources)
    if is_read or node.op != "call_function" or node.kwargs or node.target not in _IN_GRAPHS:
        raise _OtherError
    return Formula(_IN_GRAPHS[node.target], tuple(_of_node(each, sources) for each in node.args))


def _source_of_size(node: torch.fx.Node) -> Any:
    """Where a size that is a symbol of the inputs is found; None of any other number."""
    size = node.meta.get("example_value")
    if not isinstance(size, torch.SymInt):
        return None
    return next(iter(size.node.shape_env.var_to_sources.get(size.node.expr, ())), None)


def _found(source: Any, sources: _Sources) -> _Found:
    if not can_be_loaded(source):
        raise _OtherError
    sources[name_of(source)] = source
    return _Found(name_of(source))


def _holds(known: _Known, answer: bool, *values: Any) -> bool:
    return bool(known.calculate(*values)) is answer


def _is_value(known: _Known, value: int, *values: Any) -> bool:
    return bool(known.calculate(*values) == value)


def _is_below(known: _Known, bound: int, *values: Any) -> bool:
    return bool(abs(known.calculate(*values)) < bound)


def _is_of_type(known: _Known, kind: type, *values: Any) -> bool:
    try:
        return type(known.calculate(*values)) is kind
    except Exception:  # of other values
        return False


late_numbers.known = sys.modules[__name__]
