"""What Python's `random`, or numpy's generator, draws: inputs of the graph, drawn before it in eager's order.

Dynamo takes `random.uniform` and `random.randint` so, and breaks at `random.random`.  In the place of numpy's generator
it has torch's draw, which is another stream, or breaks.  A float stays a number here: generated code has it as it was
drawn, and the graph as a tensor () of float64 (`number_tensors`).
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...source.covered import is_under
from ...source.draws import OF_ARRAYS, OF_RANDOM
from ..attempt.compilation import Compilation
from ..door.question import at_connection
from ..door.tracer import SourceLine, Trace, trace_at
from ..door.variables import Variable, python_of
from ..facts.operations import is_of_torch
from ..facts.writes import operations
from ..graph_end.order import Verdict
from . import late_numbers
from .number_inputs import array_input, number_input

Given = tuple[tuple[Any, ...], dict[str, Any]]  # arguments by position, and by name
_KINDS = "biuf"  # of arrays for which there are tensors: truths, whole numbers and floats


@dataclass
class _Draws:
    """The lines of the program with draws that are inputs in an attempt."""

    lines: set[SourceLine | None] = field(default_factory=set)


@at_connection
def watch() -> None:
    """Stand where Dynamo calls what numpy has, from now on."""
    from torch._dynamo.variables.misc import NumpyVariable

    otherwise = NumpyVariable.call_function
    if hasattr(otherwise, "draws"):
        return

    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Sequence[Variable], kwargs: dict[str, Variable]) -> Any:
        trace = trace_at(translator) if _is_of_numpy(function.value) else None
        made = None if trace is None else _drawn_by_numpy(trace, function.value, args, kwargs)
        return otherwise(function, translator, args, kwargs) if made is None else made

    call_function.draws = True  # type: ignore[attr-defined]
    NumpyVariable.call_function = call_function


def _drawn_by_numpy(
    trace: Trace, function: Callable[..., Any], args: Sequence[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """``numpy.random.uniform(0, 1, size=3)``, drawn before the graph; None where it cannot be."""
    outside = next(trace.frames_outside(), None)
    if outside is None or not is_under("value", outside.f_code, outside.f_globals):
        return None
    return _drawn(trace, function, args, kwargs)


def drawn(trace: Trace, function: Variable, given: Variable) -> Variable:
    """``function(*given)``, drawn before the graph; None where it cannot be."""
    return _drawn(trace, python_of(function), given.items, {})


def _drawn(
    trace: Trace, function: Callable[..., Any], args: Sequence[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """A float as a late number, or an array of numpy; None where it cannot be.

    What is drawn and looked at by nobody is drawn all the same: it moves the state of the generator.
    """
    if not late_numbers.may_wait_here(trace):
        return None
    try:
        given: Given = tuple(map(_constant, args)), {name: _constant(each) for name, each in kwargs.items()}
    except _UnknownError:
        return None
    example = _example(function, given)
    is_number = type(example) in (int, float)
    if not is_number and not (type(example).__name__ == "ndarray" and example.dtype.kind in _KINDS):
        return None
    trace.compilation.of(_Draws).lines.add(trace.line)
    trace.compilation.judge(Verdict.DRAWS, _judge)
    if is_number:
        return late_numbers.late_of(trace, input_of(trace, function, given, type(example)))
    source = _source_of(trace, function, given)
    return array_input(trace, source, torch.as_tensor(example), f"graphmend_drawn_{len(trace.output.random_calls)}")


class _UnknownError(Exception):
    """The trace does not know what a function is given."""


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
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and getattr(function, "__self__", None) is numpy.random.mtrand._rand


def _example(function: Any, given: Given) -> Any:
    """What another generator draws, which nobody else has; None where the module's own is not asked, or fails."""
    name, (positional, options) = getattr(function, "__name__", ""), given
    if getattr(function, "__self__", None) is random._inst and name in OF_RANDOM:
        other: Any = random.Random(0)
    elif _is_of_numpy(function) and name in OF_ARRAYS:
        other = sys.modules["numpy"].random.RandomState(0)
    else:
        return None
    try:
        return getattr(other, name)(*positional, **options)
    except Exception:  # it raises where it stands
        return None


def input_of(trace: Trace, function: Callable[..., Any], given: Given, kind: type) -> Variable:
    """A new input of the graph, a number of that type, for which generated code calls the function before it."""
    source = _source_of(trace, function, given)
    return number_input(trace, source, kind, f"graphmend_drawn_{len(trace.output.random_calls)}")


def _source_of(trace: Trace, function: Callable[..., Any], given: Given) -> Any:
    """Where generated code finds what the function has given, which it calls before the graph."""
    from torch._dynamo.source import RandomValueSource

    source = RandomValueSource(len(trace.output.random_calls))
    trace.output.random_calls.append((function, *given))
    return source


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """May an operation of another library draw from the same generator in the graph, before a draw that is an input?"""
    if not all(map(is_of_torch, operations(module))):
        late_numbers.without(compilation, compilation.of(_Draws).lines, "what is drawn before the graph may be another")
