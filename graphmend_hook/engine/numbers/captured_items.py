"""Items at captured numbers: which parts of an index they are, and that there is an item at each."""

from __future__ import annotations

from typing import Any

import torch

from ..door.question import question
from ..door.tracer import Trace
from ..door.variables import Variable, fake_of, is_known, is_plain_tensor, is_unbacked, type_of

_OF_A_DIMENSION = (int, slice)
_PLAIN = (*_OF_A_DIMENSION, type(None), type(...))


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
