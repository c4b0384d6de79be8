"""Items at captured numbers, ``x[k]``, ``x[:, k]``.

PyTorch takes no symbol of the data in a tuple; `torch.select` takes one, and gives the same view.  Inductor does not
look whether there is such an item, so the graph does.
"""

from __future__ import annotations

from typing import Any

import torch

from ...engine.numbers.captured_items import captured_in, place_of


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
