"""Numbers that Python's `random`, or numpy's generator, draws: inputs of the graph, drawn before it in eager's order.

Dynamo takes `random.uniform` and `random.randint` so, and breaks at `random.random` and at those of numpy.  A float
stays a number here: generated code has it as it was drawn, and the graph as a tensor () of float64 (`number_tensors`).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ...source.draws import OF_NUMPY, OF_RANDOM
from ..attempt.compilation import Compilation
from ..door.tracer import SourceLine, Trace
from ..door.variables import Variable, fake_of, python_of
from ..facts.operations import is_of_torch
from ..facts.writes import operations
from ..graph_end.order import Verdict
from . import late_numbers
from .number_inputs import number_input


@dataclass
class _Draws:
    """The lines of the program with draws that are inputs in an attempt."""

    lines: set[SourceLine | None] = field(default_factory=set)


def drawn(trace: Trace, function: Variable, given: Variable) -> Variable:
    """``function(*given)``, drawn before the graph: a float as a late number; None where it cannot be.

    What is drawn and looked at by nobody is drawn all the same: it moves the state of the generator.
    """
    target, numbers = python_of(function), _numbers(given)
    if numbers is None or not late_numbers.may_wait_here(trace):
        return None
    example = _example(target, numbers)
    if type(example) not in (int, float):
        return None
    trace.compilation.of(_Draws).lines.add(trace.line)
    trace.compilation.judge(Verdict.DRAWS, _judge)
    made = input_of(trace, target, numbers, type(example))
    return late_numbers.late_of(trace, made)


def _numbers(given: Variable) -> tuple[Any, ...] | None:
    """The arguments, if they are numbers that the trace knows."""
    try:
        numbers = fake_of(given)
    except NotImplementedError:
        return None
    is_known = isinstance(numbers, tuple) and all(type(number) in (int, float) for number in numbers)
    return numbers if is_known else None


def _example(function: Any, numbers: tuple[Any, ...]) -> Any:
    """What another generator draws, which nobody else has; None where the module's own is not asked, or fails."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    numpy = sys.modules.get("numpy")
    if owner is random._inst and name in OF_RANDOM:
        other: Any = random.Random(0)
    elif numpy is not None and owner is numpy.random.mtrand._rand and name in OF_NUMPY:
        other = numpy.random.RandomState(0)
    else:
        return None
    try:
        return getattr(other, name)(*numbers)
    except Exception:  # it raises where it stands
        return None


def input_of(trace: Trace, function: Callable[..., Any], numbers: tuple[Any, ...], kind: type) -> Variable:
    """A new input of the graph, a number of that type, for which generated code calls the function before it."""
    from torch._dynamo.source import RandomValueSource

    source = RandomValueSource(len(trace.output.random_calls))
    trace.output.random_calls.append((function, numbers, {}))
    return number_input(trace, source, kind, f"graphmend_drawn_{len(trace.output.random_calls)}")


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """May an operation of another library draw from the same generator in the graph, before a draw that is an input?"""
    if not all(map(is_of_torch, operations(module))):
        late_numbers.without(compilation, compilation.of(_Draws).lines, "a number is drawn before the graph")
