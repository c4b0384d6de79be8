"""Items in a side of a branch: ``x[mask]``, of which the data decides how many, and writes to those of tensors."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ...engine.numbers.late_numbers import is_late_number
from ..shared import traced_selection
from ..shared.traced_calls import begun, judged
from ..shared.traced_sides import Unspeculable
from ..shared.traced_speculated import augmented, current_item, item_of, plain, stores
from ..where.codes import HARMFUL
from .traced import is_traced
from .traced_data_shapes import taken_in_side


def item_in_side(container: Any, index: Any) -> Any:
    """``container[index]``; the index may be a mask, or a number that the data decides, of a row that is there."""
    if isinstance(index, torch.Tensor) and index.dtype is torch.bool and is_traced(container):
        found = taken_in_side(container, index)
        return container[index] if found is None else found
    return item_of(container, index)


def augment_item(name: str, items: Any, key: Any, value: Any) -> Any:
    """``items[key] += value``, as `augmented`; gives what stands for `items` from now on."""
    stores()
    if type(items) is dict:
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
    if isinstance(written, torch.Tensor) and traced_selection.may_be_replaced(written, (*given, *named.values())):
        new = getattr(written, method.rstrip("_"))(*given, **named)
        judged(start, None)
        if not traced_selection.stands_for_written(new, written, True):
            raise Unspeculable(HARMFUL)
        return new
    getattr(written, method)(*given, **named)
    return judged(start, written)


def write_item(items: Any, key: Any, value: Any) -> Any:
    """``items[key] = value``; gives what stands for `items` from now on.

    A tensor is written to where the side is taken.  If a gradient comes in by that, another tensor is made instead of
    one that this trace has made, if the rest of the program cannot tell.
    """
    start = begun()
    if (
        not isinstance(items, torch.Tensor)
        or is_late_number(value)
        or not traced_selection.may_be_replaced(items, (value,))
    ):
        items[key] = value
        return judged(start, items)
    new = items.clone()
    new[key] = value
    judged(start, None)
    if not traced_selection.stands_for_written(new, items, True):
        raise Unspeculable(HARMFUL)
    return new
