"""Items at captured numbers, ``x[k]``, ``x[:, k]``, ``x[min(k, n - 1)]``, wherever mended code asks for one.

PyTorch takes no symbol of the data in a tuple, and none where it has no bounds; `torch.select` takes one, and gives the
same view.  Inductor does not look whether there is such an item, so the graph does.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from ..door.question import at_connection, question
from ..door.tracer import Trace, covered_trace_at
from ..door.variables import (
    Variable,
    answer_before,
    fake_of,
    is_known,
    is_plain_tensor,
    is_unbacked,
    is_unread,
    type_of,
)

_OF_A_DIMENSION = (int, slice)
_PLAIN = (*_OF_A_DIMENSION, type(None), type(...))


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo selects an item of a tensor, from now on."""
    from torch._dynamo.variables.lists import TupleVariable
    from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable

    for kind in (SymNodeVariable, TupleVariable):
        answer_before(operator.getitem, TensorVariable, kind, _answer)


def _answer(_function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Any], kwargs: Any) -> Any:
    found = _selected_in(translator, *args)
    return otherwise()(translator, args, kwargs) if found is None else found


def _selected_in(translator: Any, container: Variable, index: Any) -> Variable | None:
    """What `selected` gives, in mended code, if a part of the index is a captured number."""
    from torch._dynamo.variables.base import VariableTracker

    parts = index.items if type_of(index) is tuple else [index]
    if not any(not is_unread(part) and is_unbacked(getattr(part.realize(), "sym_num", 0)) for part in parts):
        return None
    if covered_trace_at(translator) is None:
        return None
    found: Variable = VariableTracker.build(translator, selected).call_function(translator, [container, index], {})
    return None if found.is_python_constant() else found


def selected(container: Any, index: Any) -> Any:
    """``container[index]``; None if no such number is in the index, or a part of it is a tensor or a list."""
    index = index if isinstance(index, tuple) else (index,)
    captured = captured_in(container, index)
    if not captured:
        return None
    items, others = container, list(index)
    for place, dimension, is_there in captured:  # the last one first; before the others: Inductor selects from no slice
        number = others.pop(place)
        items = torch.select(items, dimension, number if is_there else place_of(number, items.shape[dimension]))
    return items[tuple(others)] if others else items


def place_of(number: int, size: int) -> int:
    """The place of the item at the number, counted from 0 on; the graph fails where there is none."""
    torch._check(number >= -size)
    torch._check(number < size)
    return number % size


@question(otherwise=None)
def captured_in(_trace: Trace, container: Variable, index: Variable) -> Any:
    """Of the captured numbers in an index, a tuple; None if a part of it is a tensor or a list.

    From the last one on: its place in the index, which dimension it selects from, and whether there is an item at it,
    counted from 0 on, whatever the data is.
    """
    if not is_plain_tensor(container):
        return None
    parts = [part.realize() for part in index.items]
    kinds, shape = [type_of(part) for part in parts], fake_of(container).shape
    rest = len(shape) - sum(kind in _OF_A_DIMENSION for kind in kinds)
    if rest < 0 or not all(kind in _PLAIN for kind in kinds):
        return None
    found, dimension = [], 0
    for place, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        number = getattr(part, "sym_num", 0)
        if kind is int and is_unbacked(number):
            found.append((place, dimension, is_known(number >= 0) and is_known(number < shape[dimension])))
        dimension += rest if kind is type(...) else kind in _OF_A_DIMENSION
    return tuple(found[::-1])
