"""Items in a side of a branch: ``x[mask]``, of which the data decides how many, writes to those of tensors, appends.

What is made of a list of tensors that a side has appended to is here, too (`late_tensor_lists`): each of the functions
is given the tensors, zero where they are not in the list, and whether each is, as tensors () of bool.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ...engine.door.question import in_trace
from ...engine.numbers import late_lists
from ...engine.numbers.late_numbers import is_late_number
from ...engine.numbers.late_tensor_lists import joins
from ..shared import traced_selection, traced_sides
from ..shared.traced_calls import begun, judged
from ..shared.traced_speculated import augmented, current_item, item_of, plain, stores
from .traced import is_traced
from .traced_data_shapes import taken, taken_in_side


def item_in_side(container: Any, index: Any) -> Any:
    """``container[index]``; the index may be a mask, or a number that the data decides, of a row that is there."""
    if isinstance(index, torch.Tensor) and index.dtype is torch.bool and is_traced(container):
        found = taken_in_side(container, index)
        return container[index] if found is None else found
    return item_of(container, index)


def augment_item(name: str, items: Any, key: Any, value: Any) -> Any:
    """``items[key] += value``, as `augmented`; gives what stands for `items` from now on."""
    stores()
    if type(items) is dict or (type(items) is list and type(key) is int):
        items[plain(key)] = augmented(name, current_item(items, key), value)
        return items
    if not isinstance(items, torch.Tensor):
        start = begun()
        items[key] = getattr(operator, "i" + name.rstrip("_"))(items[key], value)
        judged(start, None)
        return items
    start = begun()
    new = getattr(operator, name)(item_in_side(items, key), value)
    return write_item(items, key, judged(start, new))


def write_by(written: Any, method: str, *given: Any, **named: Any) -> Any:
    """``written.<method>(...)``, of a method that writes; gives what stands for `written` from now on."""
    start = begun()
    values = (*given, *named.values())
    if _is_replaced(written, values):
        new = getattr(written, method.rstrip("_"))(*given, **named)
        judged(start, None)
        if traced_selection.stands_for_written(new, written, not traced_selection.brings_gradient(values)):
            return new
        start = begun()
    getattr(written, method)(*given, **named)
    return judged(start, written)


def write_item(items: Any, key: Any, value: Any) -> Any:
    """``items[key] = value``; gives what stands for `items` from now on.

    A tensor is written to where the side is taken, or another one is made instead of one that this trace has made, if
    the rest of the program cannot tell.
    """
    start = begun()
    if not is_late_number(value) and _is_replaced(items, (value,)):
        new = items.clone()
        new[key] = value
        judged(start, None)
        if traced_selection.stands_for_written(new, items, not traced_selection.brings_gradient((value,))):
            return new
        start = begun()
    items[key] = value
    return judged(start, items)


def append_to(spelling: str, items: Any, value: Any) -> Any:
    """``items.append(value)``, of a list of that name; gives what stands for it from now on."""
    start = begun()
    if in_trace() and late_lists.may_grow(spelling, items, value):
        return late_lists.grown(items, value)
    items.append(value)
    return judged(start, items)


def _is_replaced(written: Any, values: tuple[Any, ...]) -> bool:
    if not isinstance(written, torch.Tensor) or not in_trace():
        return False
    return traced_selection.brings_gradient(values) or traced_selection.is_to_be_replaced(written)


@joins(sum)
def summed(tensors: tuple[torch.Tensor, ...], _are_in: tuple[torch.Tensor, ...]) -> Any:
    """``sum(tensors)``, of those that are in the list: to add zeros to a sum that began with 0 changes no bit of it."""
    total: Any = 0
    for each in tensors:
        total = total + each
    return total


@joins(torch.stack)
def stacked(tensors: tuple[torch.Tensor, ...], are_in: tuple[torch.Tensor, ...]) -> Any:
    """``torch.stack(tensors)``, of those that are in the list."""
    return _rows(torch.stack(tensors), torch.stack(are_in))


@joins(torch.cat, torch.concat, torch.concatenate)
def joined(tensors: tuple[torch.Tensor, ...], are_in: tuple[torch.Tensor, ...]) -> Any:
    """``torch.cat(tensors)``, of those that are in the list."""
    masks = [is_in.expand(each.shape[0]) for each, is_in in zip(tensors, are_in)]  # noqa: B905  Dynamo: no strict=
    return _rows(torch.cat(tensors), torch.cat(masks))


def _rows(table: torch.Tensor, are_in: torch.Tensor) -> Any:
    return taken_in_side(table, are_in) if traced_sides.is_in_region() else taken(table, are_in)
