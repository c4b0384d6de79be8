"""Conditions in which tensors take part: their truth as tensors () of bool, with Python's rules for everything else.

Dynamo inlines these functions and folds their tests.  In non-strict export they run as Python, on traced tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling, is_exporting

from ...dynamo import queue, ranges
from ...dynamo.place import assert_in_graph, is_exported_here, is_transformed
from ..effects.traced_defer import record
from . import traced_sides
from .traced_rounding import round_decisions
from .traced_speculated import Unspeculable, has_known_shape, is_tensor

CALLED = (  # by rewritten code
    *("compiling", "undecided", "negate", "both", "either", "every", "one_value", "early", "equal"),
)


def compiling() -> bool:
    """Is the caller being traced, by Dynamo or for an export?

    `torch.compiler.is_compiling` says so to every thread while one compiles, and to eager code that a backend runs.
    """
    return is_dynamo_compiling() or (is_exporting() and is_exported_here())


def undecided(test: object) -> bool:
    """Does the truth of `test` depend on data that only exists when the graph runs?"""
    return compiling() and isinstance(test, torch.Tensor)


def truth(test: torch.Tensor) -> torch.Tensor:
    """`test` as a tensor () of bool; shapes with more or less than one element have no truth."""
    if is_transformed():
        raise Unspeculable("GM102-T07")
    if not has_elements(test) or test.numel() != 1:
        raise Unspeculable("GM102-T01")
    flat = test if test.dim() == 0 else test.reshape(())
    predicate = flat if flat.dtype is torch.bool else flat != 0
    if is_dynamo_compiling():
        round_decisions(predicate)
    return predicate


def of_range(test: torch.Tensor) -> bool | None:
    """The truth of a test of one element where the range of its numbers, a draw in [0, 1) say, decides it; else None.

    The graph makes sure of it, and so keeps a draw that nothing else uses.
    """
    found: bool | None = ranges.truth(test) if is_dynamo_compiling() and queue.specialise else None
    if found is not None:
        assert_in_graph(truth(test) if found else ~truth(test), "graphmend_hook: a random number is out of its range")
    return found


def negate(test: Any) -> Any:
    """``not test``."""
    if undecided(test) and has_truth(test):
        return ~truth(test)
    return not test


def both(left: Any, right: Any) -> Any:
    """``left and right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or true."""
    if not undecided(left):
        return right
    if not undecided(right):
        return left if right else False
    if has_truth(left) and has_truth(right):
        return truth(left) & truth(right)
    return left and right


def either(left: Any, right: Any) -> Any:
    """``left or right`` for the sake of its truth; `right` is asked for only where `left` is a tensor or false."""
    if not undecided(left):
        return right
    if not undecided(right):
        return True if right else left
    if has_truth(left) and has_truth(right):
        return truth(left) | truth(right)
    return left or right


def every(condition: Any) -> Any:
    """Do all elements hold?"""
    return condition.all() if undecided(condition) else condition


def one_value(tensor: Any) -> Any:
    """``tensor.item()`` for the sake of its truth."""
    return tensor if undecided(tensor) and has_truth(tensor) else tensor.item()


def early(join: Callable[[Any, Any], Any], left: Any, right: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """`both` or `either` with a right operand that Python might not evaluate; None if it cannot be evaluated yet."""
    if is_dynamo_compiling() and not traced_sides.begin_sides():
        record("GM102-T11")
        return None
    joined = None
    try:
        joined = join(left, right(*arguments))
    except Unspeculable as error:
        record(*error.args)
    except Exception:
        record("GM102-T05")
    if is_dynamo_compiling():
        traced_sides.end_sides()
    return joined


def equal(left: Any, right: Any) -> Any:
    """``torch.equal(left, right)``, as a tensor () of bool where only the values can tell."""
    if not (undecided(left) and undecided(right) and has_elements(left) and has_elements(right)):
        return torch.equal(left, right)
    if left.dtype is not right.dtype or left.device != right.device or left.is_quantized:
        return torch.equal(left, right)
    return (left == right).all() if left.shape == right.shape else False


def has_elements(tensor: Any) -> bool:
    """Does it hold data, as many elements as the trace can tell?"""
    return holds_data(tensor) and has_known_shape(tensor)


def holds_data(tensor: Any) -> bool:
    return is_tensor(tensor) and tensor.device.type != "meta" and not is_transformed()


def has_truth(tensor: Any) -> bool:
    return has_elements(tensor) and tensor.numel() == 1
