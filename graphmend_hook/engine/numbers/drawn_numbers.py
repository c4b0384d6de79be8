"""What Python's `random`, or numpy's generator, draws: inputs of the graph, drawn before it in eager's order.

Dynamo takes `random.uniform` and `random.randint` so, and breaks at `random.random`.  In the place of numpy's generator
it has torch's draw, which is another stream: so where a draw of numpy's cannot be an input, the graph ends, unless
there may be but one (``fullgraph=True``).  A float stays a number here: generated code has it as it was drawn, and the
graph as a tensor () of float64 (`number_tensors`).
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...source.draws import OF_ARRAYS, OF_RANDOM
from ..attempt.compilation import Compilation
from ..door.question import at_connection, is_answered
from ..door.tracer import SourceLine, Trace, is_under, trace_at
from ..door.variables import Variable, python_of
from ..facts.operations import is_of_torch
from ..facts.writes import operations
from ..graph_end.order import Verdict
from . import late_numbers
from .number_inputs import array_input, number_input

Given = tuple[tuple[Any, ...], dict[str, Any]]  # arguments by position, and by name
_FUNCTIONS = ("seed", "sample", "ranf")  # of numpy's generator, that are no methods of it
_BEFORE = "what is drawn before the graph may be another number"


@dataclass
class _Draws:
    """The lines of the program with draws that are inputs in an attempt.

    is_mixed: has Dynamo made an operation of torch of what else numpy's generator does, `seed` or `shuffle`?
    """

    lines: set[SourceLine | None] = field(default_factory=set)
    is_mixed: bool = False


class _UnknownError(Exception):
    """The trace does not know what a function is given."""


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo calls what numpy has, from now on."""
    from torch._dynamo import config
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.variables.misc import NumpyVariable

    otherwise = NumpyVariable.call_function

    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Sequence[Variable], kwargs: dict[str, Variable]) -> Any:
        trace = trace_at(translator) if _is_of_numpy(function.value) else None
        if trace is None or not is_under(trace, "value") or not is_answered(trace) or not config.trace_numpy:
            return otherwise(function, translator, args, kwargs)
        made = _drawn(trace, function.value, args, kwargs)
        if made is not None:
            return made
        if not trace.compilation.one_graph:
            raise Unsupported("numpy's generator is asked for what is not known before the graph")
        result = otherwise(function, translator, args, kwargs)
        _mix(trace.compilation)
        return result

    NumpyVariable.call_function = call_function


def _mix(compilation: Compilation) -> None:
    """Torch's generator stands for numpy's in this graph, as in stock: then it does so for all that draws."""
    draws = compilation.of(_Draws)
    draws.is_mixed = True
    if draws.lines:
        late_numbers.without(compilation, draws.lines, _BEFORE)


def drawn(trace: Trace, function: Variable, given: Variable) -> Variable:
    """``function(*given)``, drawn before the graph; None where it cannot be."""
    return _drawn(trace, python_of(function), given.items, {})


def _drawn(
    trace: Trace, function: Callable[..., Any], args: Sequence[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """A float as a late number, or an array of numpy; None where it cannot be.

    What is drawn and looked at by nobody is drawn all the same: it moves the state of the generator.
    """
    other = _other_generator(function)
    if other is None or trace.compilation.of(_Draws).is_mixed or not late_numbers.may_wait_here(trace):
        return None
    try:
        given: Given = tuple(map(_constant, args)), {name: _constant(each) for name, each in kwargs.items()}
    except _UnknownError:
        return None
    example = _example(other, function.__name__, given)
    if example is None:
        return None
    trace.compilation.of(_Draws).lines.add(trace.line)
    trace.compilation.judge(Verdict.DRAWS, _judge)
    if isinstance(example, torch.Tensor):
        return array_input(trace, *_place_of(trace, function, given), example)
    return late_numbers.late_of(trace, input_of(trace, function, given, type(example)))


def _constant(variable: Variable) -> Any:
    """A number, a tuple of numbers, or the like; a size that is a symbol is a number from then on."""
    variable = variable.realize()
    if variable.is_python_constant():
        return variable.as_python_constant()
    symbol = late_numbers.symbol_of(variable)
    if symbol is not None:
        return int(symbol)
    if type(variable).__name__ in ("SizeVariable", "TupleVariable", "ListVariable"):
        return tuple(map(_constant, variable.items))
    raise _UnknownError


def _is_of_numpy(function: Any) -> bool:
    """Does it draw by the one generator that numpy's module has, or set it?"""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return False
    own = [getattr(numpy.random, name, None) for name in _FUNCTIONS]
    return getattr(function, "__self__", None) is numpy.random.mtrand._rand or any(function is each for each in own)


def _other_generator(function: Any) -> Any:
    """Another generator of the kind, which nobody else has; None where the function draws by none of a module's own."""
    name = getattr(function, "__name__", "")
    if getattr(function, "__self__", None) is random._inst and name in OF_RANDOM:
        return random.Random(0)
    return sys.modules["numpy"].random.RandomState(0) if _is_of_numpy(function) and name in OF_ARRAYS else None


def _example(generator: Any, name: str, given: Given) -> Any:
    """A number that the generator draws, or a tensor with the elements of an array.

    None where it fails, as it does where it stands then; and of what torch has no tensor for.  Of an array without
    dimensions Dynamo forgets that it is no number of numpy's.
    """
    positional, options = given
    try:
        found = getattr(generator, name)(*positional, **options)
        if type(found) in (int, float):
            return found
        is_array = isinstance(found, sys.modules["numpy"].ndarray) and found.ndim > 0
        return torch.as_tensor(found) if is_array else None
    except Exception:
        return None


def input_of(trace: Trace, function: Callable[..., Any], given: Given, kind: type) -> Variable:
    """A new input of the graph, a number of that type, for which generated code calls the function before it."""
    source, name = _place_of(trace, function, given)
    return number_input(trace, source, kind, name)


def _place_of(trace: Trace, function: Callable[..., Any], given: Given) -> tuple[Any, str]:
    """Where generated code finds what the function has given, which it calls before the graph; a name for the input."""
    from torch._dynamo.source import RandomValueSource

    source = RandomValueSource(len(trace.output.random_calls))
    trace.output.random_calls.append((function, *given))
    return source, f"graphmend_drawn_{len(trace.output.random_calls)}"


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """May an operation of another library draw from the same generator in the graph, before a draw that is an input?"""
    if not all(map(is_of_torch, operations(module))):
        late_numbers.without(compilation, compilation.of(_Draws).lines, _BEFORE)
