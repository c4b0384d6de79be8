"""What a side of a branch may do though it is not taken: each function here does it, or raises `Unspeculable`."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import torch

from ...engine.door.question import in_trace
from ...engine.numbers import number_or_tensor
from ...engine.numbers.late_numbers import is_late_number
from ...engine.numbers.state_numbers import late_state
from ..defer.codes import HANDLER_AROUND
from ..where import traced_rows
from ..where.codes import HARMFUL, INNER_BRANCH, MAY_FAIL
from . import traced_operations, traced_selection, traced_sides
from .traced_calls import begun, judged
from .traced_operations import has_known_shape, is_tensor
from .traced_sides import Unspeculable

_LONG = 10_000  # items of a sequence; also the exponent of a power

slice = builtins.slice  # for rewritten code, where the name may be bound to something else


def plain(value: Any) -> Any:
    """`value`, which Python is about to look at: not a tensor."""
    if isinstance(value, torch.Tensor):
        raise Unspeculable(INNER_BRANCH)
    return value


def unrelated(owner: Any, name: str) -> Any:
    """``owner.<name>`` in a side that has assigned to a name that other functions have: no property might read that."""
    if in_trace() and not traced_sides.reads_plainly(owner, name):
        raise Unspeculable(HARMFUL)
    return getattr(owner, name)


def inert(value: Any) -> Any:
    """`value`, in such a side: no method of the program's might read the name."""
    if in_trace() and traced_sides.has_methods_of_the_program(value):
        raise Unspeculable(HARMFUL)
    return value


def stores() -> None:
    """What follows stores in objects: only a trace can take that back."""
    if not in_trace():
        raise Unspeculable(HARMFUL)


def current(owner: Any, name: str) -> Any:
    """The value of an attribute that the side stores to."""
    return as_late(getattr(owner, name))


def current_item(container: Any, key: str) -> Any:
    """The value of an item that the side stores to."""
    return as_late(container[key])


def as_late(found: Any) -> Any:
    """A number or a text that the trace need not look at exists behind the graph."""
    late = late_state(found) if in_trace() else None
    return found if late is None else late


def not_late() -> Any:
    """In the place of a value that a side may not compute, where it cannot wait for the delivery either."""
    raise Unspeculable(MAY_FAIL)


def unheard(raised: Any) -> None:
    """`raised`, an exception or its class, may be raised after the graph, if nothing could have caught it before."""
    if in_trace() and traced_sides.may_be_caught(raised):
        raise Unspeculable(HANDLER_AROUND)


def moved(owner: Any, *arguments: Any, **options: Any) -> Any:
    """``owner.to(...)``, which is the tensor itself where it is of that kind already."""
    result = owner.to(*arguments, **options)
    if in_trace() and isinstance(owner, torch.Tensor) and traced_operations.gives_back(result, owner):
        return owner
    return result


def grown(name: str, left: Any, right: Any) -> Any:
    """The operator of that name in the module `operator`: of values of Python it might take any time and memory."""
    if not isinstance(left, torch.Tensor) and not isinstance(right, torch.Tensor) and not _is_little(name, left, right):
        raise Unspeculable(MAY_FAIL)
    return getattr(operator, name)(left, right)


def augmented(name: str, left: Any, right: Any) -> Any:
    """``left += right`` of a name, with the operator of that name in the module `operator`.

    A tensor is written to where the side is taken.  If a gradient comes in by that, another tensor is made instead of
    one that this trace has made, if the rest of the program cannot tell.
    """
    if not isinstance(left, torch.Tensor):
        kind, is_late = type(left), is_late_number(left)
        is_value = kind is int or kind is float or kind is bool or kind is str or kind is tuple
        if not (is_late or is_value) or (is_late and not number_or_tensor.may_be_changed(left)):
            raise Unspeculable(HARMFUL)
        return judged(begun(), grown(name, left, right))
    if not (is_late_number(right) or traced_selection.brings_gradient((right,))):
        judged(begun(), getattr(operator, "i" + name.rstrip("_"))(left, right))
        return left
    result = judged(begun(), getattr(operator, name)(left, right))
    if not in_trace() or not traced_selection.stands_for_written(result, left):
        raise Unspeculable(HARMFUL)
    return result


def _is_little(name: str, left: Any, right: Any = None) -> bool:
    """Does the operation on values of Python take little memory and time?"""
    if name in ("pow", "lshift"):
        return type(right) is not int or -_LONG < right < _LONG
    if name == "mul":
        sized, times = (right, left) if type(left) is int else (left, right)
        return not isinstance(sized, (str, bytes, list, tuple)) or len(sized) * times < _LONG
    return True


def item_of(container: Any, index: Any) -> Any:
    """``container[index]``; the index may be a whole number that the data decides, of a row that is there."""
    if not isinstance(container, torch.Tensor):
        return container[plain(index)]
    taken = _taken() if isinstance(index, torch.Tensor) and in_trace() else None
    if taken is None or not (is_tensor(container) and has_known_shape(container) and traced_rows.is_number(index)):
        return container[index]
    found = traced_rows.row(container, index, taken)
    if found is None:
        raise Unspeculable(MAY_FAIL, "getitem")
    return found


def _taken() -> Any:
    """Is the innermost side taken, as a tensor () of bool?  None where that is not known."""
    taken: Any = None
    for depth in range(traced_sides.open_sides()):
        predicate: Any = traced_sides.predicate_of(depth)
        predicate = predicate if traced_sides.is_where_true(depth) else ~predicate
        taken = predicate if taken is None else taken & predicate
    return taken
