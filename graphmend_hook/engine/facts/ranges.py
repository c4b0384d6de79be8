"""Between which numbers the elements of a tensor lie, whatever the data is: so a test of a random draw may be decided.

``torch.rand([]) < 0.0`` is false.  Bounds go through an operation that is monotone by making it on the bounds, in the
tensor's own dtype, so that they are rounded as the elements are.  `tests/compiled/test_ranges.py` measures each fact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..attempt.as_written import is_as_written
from ..attempt.restart import expect_success_of
from ..door.question import question
from ..door.tracer import Trace
from ..door.variables import Variable, tensor_node
from . import places, whole_ranges
from .operations import facts_of, name_of
from .writes import memory_of, written_by

Bounds = tuple[float, float]
_DEEPEST = 64  # operations between a draw and its test

# What an operation gives, whatever it is given: floats, and NaN of NaN.
_OF_ANYTHING: dict[str, Bounds] = {
    **dict.fromkeys(("sigmoid", "softmax", "hardsigmoid"), (0.0, 1.0)),
    **dict.fromkeys(("cos", "sin", "tanh"), (-1.0, 1.0)),
    **dict.fromkeys(("abs", "exp", "norm", "relu", "sqrt", "square"), (0.0, math.inf)),
}
# Operations that give elements of their operand, and conversions, which round them.
_HANDING_ON = frozenset(
    {
        *("clone", "contiguous", "detach", "expand", "flatten", "getitem", "reshape", "squeeze", "unsqueeze", "view"),
        *("bfloat16", "double", "float", "half", "long", "to"),
    }
)
_EXTREMES = frozenset({"all", "amax", "amin", "any", "max", "min"})
_CLAMPING = frozenset({"clamp", "clip"})
_MONOTONE = frozenset({"add", "mul", "neg", "sub", "true_divide"})  # with a number, in that number's place
_COMPARISONS = frozenset({"ge", "gt", "le", "lt"})
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_OF_TRUTHS = {"bitwise_and": min, "logical_and": min, "bitwise_or": max, "logical_or": max}
_NEGATIONS = frozenset({"bitwise_not", "logical_not"})


@dataclass(frozen=True)
class Range:
    """Every element is at least `low` and at most `high`, both numbers of its dtype; or it may be NaN."""

    low: float
    high: float
    may_be_nan: bool = False

    @property
    def truth(self) -> bool | None:
        """That of all its numbers; None where they differ."""
        if self.low > 0 or self.high < 0:
            return True
        return False if self.low == self.high and not self.may_be_nan else None


@question(otherwise=None)
def truth(trace: Trace, test: Variable) -> Any:
    """The truth of a tensor of one element where the range of its numbers decides it, else None."""
    found = None if is_as_written(trace) else range_of(trace, tensor_node(test))
    decided = None if found is None else found.truth
    if decided is not None:
        expect_success_of(trace.compilation)
    return decided


@question(otherwise=False)
def are_below(trace: Trace, tensor: Variable, bound: Variable) -> bool:
    """Are all elements of it at least 0, and below the bound, whatever the data is?  Nothing is, of a symbol."""
    if is_as_written(trace) or not bound.is_python_constant():
        return False
    found = range_of(trace, tensor_node(tensor))
    return found is not None and found.low >= 0 and found.high < bound.as_python_constant()


@question(otherwise=False)
def is_drawn_before(_trace: Trace, test: Variable) -> bool:
    """Is it made of a number of Python's `random`?  Dynamo draws it before the graph, whether it is used or not."""
    return type(test).__name__ == "UnspecializedPythonVariable"


@dataclass(frozen=True)
class _Walk:
    """From a tensor to what it is made of.

    calls: those of Python's `random`, in order; seen: what it rests on; found: the ranges of what was gone through.
    """

    calls: Sequence[tuple[Any, Sequence[Any], dict[str, Any]]]
    seen: set[torch.fx.Node] = field(default_factory=set)
    found: dict[torch.fx.Node, Range | None] = field(default_factory=dict)


def range_of(trace: Trace, node: torch.fx.Node) -> Range | None:
    """Between which numbers the elements of a tensor lie; None where nothing is known."""
    walk = _Walk(trace.output.random_calls)
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        found = _range_of(node, walk, _DEEPEST)
    return found if found is not None and _are_as_made(trace.graph, walk.seen) else None


def _are_as_made(graph: torch.fx.Graph, nodes: set[torch.fx.Node]) -> bool:
    """Has nothing else written to the tensors?"""
    memory = memory_of(nodes)
    if not memory.isdisjoint(memory_of(graph.find_nodes(op="placeholder"))) and any(map(written_by, nodes)):
        return False
    return all(node in nodes or memory.isdisjoint(written_by(node)) for node in graph.nodes)


def _range_of(node: Any, walk: _Walk, depth: int) -> Range | None:
    """The range of the elements; None where nothing is known.  What it rests on is added to what `walk` has seen."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return None
    if node not in walk.found:
        found = _range_of_result(node, value, walk, depth)
        walk.found[node] = Range(0.0, 1.0) if found is None and value.dtype is torch.bool else found
    return walk.found[node]


def _whole_range_of(operand: Any, walk: _Walk, depth: int) -> whole_ranges.Whole | None:
    """The range of an operand, a number or a tensor of whole numbers or truths."""
    if type(operand) is int:
        return operand, operand
    value = operand.meta.get("example_value") if isinstance(operand, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex():
        return None
    found = _range_of(operand, walk, depth)
    return None if found is None else (int(found.low), int(found.high))


def _range_of_result(node: torch.fx.Node, value: torch.Tensor, walk: _Walk, depth: int) -> Range | None:
    call = getattr(getattr(node.meta.get("grapharg"), "source", None), "random_call_index", None)
    if call is None and (not node.op.startswith("call") or not facts_of(node).is_of_torch):
        return None
    walk.seen.add(node)
    if call is not None:
        return _of_python(*walk.calls[call])
    found = None if value.is_floating_point() else places.bounds(node)
    if found is not None:
        return Range(*found)
    name = name_of(node)
    drawn = _DRAWS.get(name)
    if drawn is not None:
        bounds = drawn(node, value.dtype)
        return None if bounds is None else Range(*bounds)
    if name in _OF_ANYTHING:
        return Range(*_OF_ANYTHING[name], may_be_nan=True) if value.is_floating_point() else None
    if name in _CLAMPING and value.is_floating_point():
        return _clamped(node)
    if depth == 0 or not node.args:
        return None
    if value.dtype in _WHOLE:
        whole = whole_ranges.whole_range(node, value, lambda operand: _whole_range_of(operand, walk, depth - 1))
        if whole is not None:
            return Range(*whole)
    if name in _OF_TRUTHS or name in _NEGATIONS:
        return _joined(name, [_truths_of(operand, walk, depth - 1) for operand in node.args])
    operands = [operand for operand in node.args if isinstance(operand, torch.fx.Node)]
    is_square = name == "mul" and len(operands) == 2 and operands[0] is operands[1]
    if (is_square or (name == "pow" and len(operands) == 1 and node.args[1] == 2)) and value.is_floating_point():
        return Range(*_OF_ANYTHING["square"], may_be_nan=True)
    inner = _range_of(operands[0], walk, depth - 1) if len(operands) == 1 else None
    return None if inner is None else _through(name, node, operands[0], inner)


def _through(name: str, node: torch.fx.Node, operand: torch.fx.Node, inner: Range) -> Range | None:
    """What the operation makes of a range of its operand."""
    given, value = operand.meta["example_value"], node.meta["example_value"]
    is_widened = value.dtype is torch.int64 and given.dtype in (torch.int32, torch.int16, torch.uint8, torch.bool)
    if name in _HANDING_ON and (value.is_floating_point() or value.dtype is given.dtype or is_widened):
        if name == "view" and value.dtype is not given.dtype:
            return None
        low, high = (bound.to(value.dtype).item() for bound in _tensors(inner, given.dtype))
        return Range(low, high, inner.may_be_nan)
    if name in _EXTREMES:
        has_elements = type(given.numel()) is int and given.numel() > 0 and len(node.args) == 1 and not node.kwargs
        return inner if has_elements and (given.dtype is torch.bool or name not in ("all", "any")) else None
    if name in ("eq", "ne") and len(node.args) == 2 and type(node.args[1]) in (int, float):
        lowest, highest = _tensors(inner, given.dtype)
        differs = bool((lowest > node.args[1]) | (highest < node.args[1]))
        return Range(float(name == "ne"), float(name == "ne")) if differs else None
    if name in _COMPARISONS or (name in _MONOTONE and given.is_floating_point()):
        return _at_bounds(name, node, operand, inner)
    return None


def _at_bounds(name: str, node: torch.fx.Node, operand: torch.fx.Node, inner: Range) -> Range | None:
    """What a monotone operation with numbers gives, by what it gives of the bounds."""
    others = [other for other in node.args if other is not operand]
    if node.kwargs or not all(type(other) in (int, float) for other in others):
        return None
    if name == "true_divide" and node.args[0] is not operand:  # by what may be zero
        return None
    made = []
    for bound in _tensors(inner, operand.meta["example_value"].dtype):
        arguments = [bound if other is operand else other for other in node.args]
        function: Any = getattr(torch.Tensor, str(node.target)) if node.op == "call_method" else node.target
        made.append(function(*arguments).item())
    low, high = sorted(made)
    if math.isnan(low) or math.isnan(high):
        return None
    if name in _COMPARISONS:  # NaN is not less than anything, nor more
        return Range(0.0 if inner.may_be_nan else float(low), float(high))
    return Range(low, high, inner.may_be_nan)


def _clamped(node: torch.fx.Node) -> Range | None:
    """Of ``clamp(min, max)``; where `min` is the greater, it gives `max`."""
    low, high = _numbers(node, ("min", "max"), (-math.inf, math.inf))
    return None if low is None or high is None else Range(min(low, high), high, may_be_nan=True)


def _truths_of(operand: Any, walk: _Walk, depth: int) -> Range | None:
    """The range of an operand that holds truths, both of them where nothing is known; None where it holds numbers."""
    value = operand.meta.get("example_value") if isinstance(operand, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype is not torch.bool:
        return None
    return _range_of(operand, walk, depth)


def _joined(name: str, operands: list[Range | None]) -> Range | None:
    """What is made of truths."""
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    if name in _NEGATIONS:
        return Range(1.0 - known[0].high, 1.0 - known[0].low)
    join = _OF_TRUTHS[name]
    return Range(join(operand.low for operand in known), join(operand.high for operand in known))


def _tensors(found: Range, dtype: torch.dtype) -> list[torch.Tensor]:
    return [torch.tensor(bound, dtype=dtype, device="cpu") for bound in (found.low, found.high)]


def is_drawn_from_many(node: torch.fx.Node) -> bool:
    """Is it a float that torch draws from an interval, as it was drawn?  Hardly ever it is any one number."""
    while name_of(node) in _HANDING_ON and len(node.all_input_nodes) == 1:
        (node,) = node.all_input_nodes
    value = node.meta.get("example_value")
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    if not (node.op.startswith("call") and is_float and facts_of(node).is_of_torch):
        return False
    low, high = _numbers(node, ("from", "to"), (0.0, 1.0))
    is_between = name_of(node) == "uniform_" and low is not None and high is not None and low < high
    return is_between or name_of(node) in _OF_INTERVALS


# --- draws: the bounds of what each gives ----------------------------------------------------------------------------


def _uniform(node: torch.fx.Node, dtype: torch.dtype) -> Bounds | None:
    low, high = _numbers(node, ("from", "to"), (0.0, 1.0))
    if (low, high) == (0.0, 1.0):
        return _unit(node, dtype)
    if low is None or high is None or not dtype.is_floating_point:
        return None
    rounding = 4 * torch.finfo(dtype).eps * max(abs(low), abs(high))
    return low - rounding, high + rounding


def _unit(_node: torch.fx.Node, dtype: torch.dtype) -> Bounds | None:
    """At least 0 and below 1: at most the number of the dtype before it."""
    return (0.0, 1.0 - torch.finfo(dtype).eps / 2) if dtype.is_floating_point else None


def _bernoulli(node: torch.fx.Node, _dtype: torch.dtype) -> Bounds | None:
    (probability,) = _numbers(node, ("p",), (0.5,))
    return (probability, probability) if probability in (0.0, 1.0) else (0.0, 1.0)


def _whole(node: torch.fx.Node, dtype: torch.dtype) -> Bounds | None:
    given = [argument for argument in node.args if not isinstance(argument, (tuple, list))]
    if len(given) not in (1, 2) or {"low", "high", "out"} & {*node.kwargs} or dtype.is_floating_point:
        return None
    low, high = (0, *given)[-2:]
    if type(low) is not int or type(high) is not int:  # a bound may be a symbol
        return None
    return low, high - 1


_OF_INTERVALS = frozenset({"rand", "rand_like", "randn", "randn_like"})
_DRAWS: dict[str, Callable[[torch.fx.Node, torch.dtype], Bounds | None]] = {
    "rand": _unit,
    "rand_like": _unit,
    "uniform_": _uniform,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "randint": _whole,
}


def _of_python(function: Any, given: Sequence[Any], named: dict[str, Any]) -> Range | None:
    """The range of what a call of Python's global generator draws."""
    bounds = _OF_PYTHON.get(getattr(function, "__name__", ""))
    is_global = getattr(function, "__self__", None) is random._inst  # type: ignore[attr-defined, unused-ignore]
    exact = all(type(number) in (int, float) and abs(number) < _EXACT for number in given)  # and is no NaN
    return Range(*bounds(*given)) if bounds is not None and is_global and exact and not named else None


def _between(start: float, end: float) -> Bounds:
    """Of ``start + (end - start) * random()``, which may be rounded beyond the end, unless it starts at zero."""
    rounding = 4 * torch.finfo(torch.float64).eps * max(abs(start), abs(end)) if start else 0.0
    return min(start, end) - rounding, max(start, end) + rounding


_EXACT = 2**53  # beyond it not every whole number is a float
_BELOW_ONE = (0.0, 1.0 - torch.finfo(torch.float64).eps / 2)
_OF_PYTHON: dict[str, Callable[..., Bounds]] = {
    "uniform": lambda start, end: _BELOW_ONE if (start, end) == (0, 1) else _between(start, end),
    "randint": lambda first, last: (first, last),
}


def _numbers(node: torch.fx.Node, names: tuple[str, ...], default: tuple[float, ...]) -> list[float | None]:
    """The numbers after the first argument, or by name; None for what is no number."""
    given = dict(zip(names, node.args[1:], strict=False)) | node.kwargs
    found = [given.get(name, fallback) for name, fallback in zip(names, default, strict=True)]
    return [float(number) if type(number) in (int, float) else None for number in found]
