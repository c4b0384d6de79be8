"""What makes one bool of Python of many elements, for the sake of its truth: a tensor () of bool where data decides it.

Where it cannot be one, Python's own is asked, and Dynamo breaks there.
"""

from __future__ import annotations

from typing import Any

import torch

from ...engine.door.question import in_trace
from ...engine.numbers.late_numbers import is_late_number
from ..defer.traced_texts import is_text_or_number
from ..where.codes import INNER_BRANCH
from .traced_conditions import (
    are_same_shapes,
    either,
    fit,
    has_elements,
    is_left_alone,
    may_join,
    may_join_by_elements,
    truth,
    undecided,
)
from .traced_sides import Unspeculable
from .traced_speculated import plain

_MOST_NUMBERS = 8  # that an element is compared with, each by an operation


def equal(left: Any, right: Any) -> Any:
    """``torch.equal(left, right)``."""
    if not may_join_by_elements(left, right) or not _are_alike(left, right):
        return torch.equal(left, right)
    same = are_same_shapes(left.shape, right.shape)
    if same is None:
        return torch.equal(left, right)
    return (left == right).all() if same else False


def close(left: Any, right: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """``torch.allclose(left, right, rtol, atol, equal_nan)``."""
    given = _is_tolerance(rtol) and _is_tolerance(atol) and type(equal_nan) is bool
    if given and may_join_by_elements(left, right) and _are_alike(left, right) and fit(left.shape, right.shape):
        return torch.isclose(left, right, rtol, atol, equal_nan).all()
    return torch.allclose(left, right, rtol, atol, equal_nan)


def contains(element: Any, container: Any, in_side: bool = False) -> Any:
    """``element in container``."""
    if _may_be_looked_at(container):
        is_number = type(element) is int or type(element) is float or type(element) is bool
        if is_number and _is_in_range(element, container.dtype):
            return (element == container).any()
        if may_join(element) and element.device == container.device:
            return (element == container).any()
    elif _holds_numbers(container) and may_join(element):
        found = False
        for number in container:
            found = either(found, element == number)
        return found
    return plain(element) in plain(container) if in_side else element in container


def truths(name: str, items: Any, in_side: bool = False) -> Any:
    """``all(items)`` or ``any(items)``, of which Python asks each item for its truth."""
    if (
        _may_be_looked_at(items) and items.dim() and are_same_shapes((items.numel(),), items.shape[:1])
    ):  # each item has a truth
        return items.all() if name == "all" else items.any()
    if in_trace() and type(items) in (list, tuple) and all([_has_plain_truth(item) for item in items]):  # noqa: C419
        return truths_of(name, [*items])
    known = plain(items) if in_side else items
    return all(known) if name == "all" else any(known)


def truths_of(name: str, items: list[Any]) -> Any:
    """The same of items that have all been made, though Python makes them one after the other: see `early`."""
    if not all([_has_plain_truth(item) for item in items]):  # noqa: C419  Dynamo: no generators
        raise Unspeculable(INNER_BRANCH)
    open_ones = [item for item in items if undecided(item)]
    known = [bool(item) for item in items if not undecided(item)]
    is_known = (not all(known)) if name == "all" else any(known)
    if is_known or not open_ones:
        return is_known == (name == "any")
    found = truth(open_ones[0]).clone()  # nobody else has it
    for item in open_ones[1:]:
        found = found & truth(item) if name == "all" else found | truth(item)
    return found


def _has_plain_truth(item: Any) -> bool:
    """Is it a tensor that data decides, or what Python asks for its truth without a call of the program's?"""
    return may_join(item) if undecided(item) else is_text_or_number(item)


def _holds_numbers(container: Any) -> bool:
    """Is it a list or tuple of a few of Python's numbers, with which Python compares one after the other?"""
    if isinstance(container, (list, tuple)) and len(container) <= _MOST_NUMBERS:
        return all([_is_plain_number(item) for item in container])  # noqa: C419  Dynamo: no generators
    return False


def _is_plain_number(item: Any) -> bool:
    """Is it a number that is equal to itself?  Python finds an object in a list that is not."""
    if is_late_number(item) or (type(item) is not int and type(item) is not float):
        return False
    return bool(item == item)  # noqa: PLR0124


def _may_be_looked_at(tensor: Any) -> bool:
    """May what its elements decide join a condition as a tensor?"""
    return undecided(tensor) and has_elements(tensor) and not is_left_alone()


def _are_alike(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.dtype is right.dtype and left.device == right.device and not left.is_quantized


def _is_tolerance(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and value >= 0


def _is_in_range(number: Any, dtype: torch.dtype) -> bool:
    """Can the number be compared with one of the dtype: does it fit, if both are whole?"""
    if type(number) is not int:
        return True
    is_whole = not (dtype is torch.bool or dtype.is_floating_point or dtype.is_complex)
    kind = torch.iinfo(dtype if is_whole else torch.int64)
    return bool(kind.min <= number <= min(kind.max, 2**63 - 1))
