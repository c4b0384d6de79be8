"""A number until the data decides that a tensor is added to it: ``total = 0``, and in a side ``total = total + loss``.

In the graph a tensor stands for either, which holds the number where it is one; what leaves the frame is the one or the
other.  Added to a tensor it is what the number would be.  Whatever else the program does with it takes it for a tensor:
that it is one is a guard of the graph then, and where it is none, the frame runs as it was written.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..door.question import question
from ..door.tracer import Trace
from ..door.variables import Variable, fake_of, is_plain_tensor, is_unread, tensor_node
from ..facts.gradient_flow import may_save
from ..facts.writes import memory_of, memory_of_inputs
from ..shelter import is_trained
from . import late_numbers
from .captured_tensors import call
from .late_numbers import NumberOrTensor, is_late, may_be_number_or_tensor
from .number_tensors import CALCULATED, resolved

_NUMBERS = (float, int)
_ELEMENTWISE = {
    function: CALCULATED[function]
    for function in (operator.add, operator.iadd, operator.sub, operator.isub, operator.mul, operator.imul)
}
_IN_PLACE = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod),
    *(operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift),
)


@question(otherwise=False)
def may_be_merged(trace: Trace, left: Variable, right: Variable) -> bool:
    """Is one of them a tensor, or may be one, and the other a number, the same one wherever there is one?"""
    tensors, numbers = _parts(left, right)
    if not tensors or len(numbers) != 1 or not late_numbers.may_wait_here(trace):
        return False
    (number,) = numbers.values()
    fakes = [fake_of(each) for each in tensors]
    is_float = all(fake.dtype.is_floating_point and fake.dtype is fakes[0].dtype for fake in fakes)
    return is_float and float(torch.tensor(float(number), dtype=fakes[0].dtype)) == number


def _parts(*values: Variable) -> tuple[list[Variable], dict[Any, Any]]:
    """The tensors and the numbers that the values may be; no tensors where one may be anything else."""
    tensors: list[Variable] = []
    numbers: dict[Any, Any] = {}
    waiting = [each.realize() for each in values]
    for value in waiting:
        if may_be_number_or_tensor(value):
            waiting += value.operands[1:]
        elif value.is_tensor() and is_plain_tensor(value):
            tensors.append(value)
        elif value.is_python_constant() and type(value.as_python_constant()) in _NUMBERS:
            number = value.as_python_constant()
            numbers[type(number), str(number)] = number
        else:
            return [], {}
    return tensors, numbers


@question(otherwise=None)
def tensor_like(trace: Trace, value: Variable, other: Variable) -> Any:
    """The tensor that stands for the value in the graph, of the form of the other's."""
    value = value.realize()
    if is_late(value):
        return value.operands[1]
    if value.is_tensor():
        return value
    (like,), _ = _parts(other)
    return call(trace, torch.full_like, like, value.as_python_constant(), requires_grad=False)


@question(otherwise=None)
def merged(trace: Trace, predicate: Variable, selected: Variable, left: Variable, right: Variable) -> Any:
    """What stands for `left` where the predicate holds, and else for `right`; selected: of the tensors of both."""
    late_numbers.expect_end(trace)
    values = [left.realize(), right.realize()]
    are_tensors = [_is_tensor(trace, value, predicate) for value in values]
    holds = call(trace, torch.where, predicate, *are_tensors)
    number = next(each.operands[2] if is_late(each) else each for each in values if not each.is_tensor())
    lines = frozenset({trace.line}).union(*(getattr(each, "lines", ()) for each in values))
    made = late_numbers.kind_of_variable()(late_numbers.select, [holds, selected, number], NumberOrTensor, lines)
    sources = trace.compilation.of(_Sources).found
    sources[made] = {tensor_node(each) for each in values if each.is_tensor()}
    sources[made] |= {node for each in values if is_late(each) for node in sources[each]}
    return made


@dataclass
class _Sources:
    """The tensors of the program that each such value of an attempt may be."""

    found: dict[Variable, set[torch.fx.Node]] = field(default_factory=dict)


@question(otherwise=False)
def may_be_changed(trace: Trace, value: Variable) -> bool:
    """May ``value += x`` give another tensor, and leave the one that it is: does nobody else have that?"""
    return not may_be_number_or_tensor(value) or _is_alone(trace, value.realize())


def _is_alone(trace: Trace, value: Variable) -> bool:
    from torch._dynamo.variables.base import VariableTracker

    memory, held, seen = memory_of(trace.compilation.of(_Sources).found[value]), list[Variable](), dict[int, Any]()

    def look(variable: Variable) -> None:
        parts = variable.operands if is_late(variable) and variable is not value else [variable]
        tensors = [each for each in parts if not is_unread(each) and each.is_tensor()]
        held.extend(each for each in tensors if not memory.isdisjoint(memory_of([tensor_node(each)])))

    effects = trace.output.side_effects
    known = [each for frame in trace.frames() for each in (*frame.symbolic_locals.values(), *frame.stack)]
    known += [each for each in effects.id_to_variable.values() if is_unread(each) or not each.is_tensor()]
    known += [each for stored in effects.store_attr_mutations.values() for each in stored.values()]
    VariableTracker.visit(look, known, seen)
    is_older = not memory.isdisjoint(memory_of_inputs(trace.output.graph))
    return not (held or is_older or any(is_trained(node) and may_save(node, memory) for node in trace.graph.nodes))


def _is_tensor(trace: Trace, value: Variable, predicate: Variable) -> Variable:
    """Whether the value is a tensor, as a tensor () of bool."""
    if is_late(value):
        return value.operands[0]
    return call(trace, torch.full_like, predicate, value.is_tensor())


def add_handlers(kind: Any) -> None:
    """Let Dynamo's builtins take such a value where they take a late number; so the others have been added before."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    handlers = BuiltinVariable.call_function_handler_cache
    for key, handler in [*handlers.items()]:
        if kind in key and key[0] not in (isinstance, type):
            handlers[key] = functools.partial(_handled, key[0], handler)


def _handled(function: Any, otherwise: Any, translator: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
    is_either = [*map(may_be_number_or_tensor, args)]
    if not any(is_either):
        return otherwise(translator, args, kwargs)
    if is_either[0] and function in _IN_PLACE and not _is_alone(Trace(translator), args[0].realize()):
        late_numbers.give_up(args[0].realize())
    return _computed(function, translator, [each.realize() for each in args], is_either)


def _computed(function: Any, translator: Any, given: list[Variable], is_either: list[bool]) -> Variable:
    """What the function of Python makes of these, some of which may be numbers."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    if is_either[0]:  # which is not changed in place
        function = _ELEMENTWISE.get(function, function)
    takes_number = False
    if function in _ELEMENTWISE.values() and is_either.count(True) == 1:
        one, other = given if is_either[0] else given[::-1]
        takes_number = _takes_number(one.operands[1], other)
    pairs = zip(given, is_either, strict=True)
    tensors = [(each.operands[1] if takes_number else resolved(each)) if is_one else each for each, is_one in pairs]
    return BuiltinVariable(function).call_function(translator, tensors, {})


def _takes_number(either: Variable, tensor: Variable) -> bool:
    """Does an operation on a number and the tensor give what it gives on the tensor () of that number?"""
    if is_unread(tensor) or not is_plain_tensor(tensor):
        return False
    one, other = fake_of(either), fake_of(tensor)
    return one.dim() == 0 and one.dtype is other.dtype and one.device == other.device
