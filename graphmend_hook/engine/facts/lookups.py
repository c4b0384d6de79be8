"""Operations that read or write elements at an index: is each index there?  So it is where its range is known."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import same_sizes
from .operations import is_of_torch, name_of
from .ranges import range_of
from .writes import stay

# What they are about, the dimension, and the index come first; how they spell the last two.
_ALONG_A_DIMENSION = {
    **dict.fromkeys(("gather", "index_select"), ("dim", "index")),
    **dict.fromkeys(("scatter", "scatter_add", "index_add", "index_copy", "index_fill"), ("dim", "index")),
    "take_along_dim": ("indices", "dim"),
}

_SHORT = frozenset({"index_add", "index_select"})  # their index may be of 32 bits


def size_of_table(node: torch.fx.Node) -> Any:
    """How many places there are for the operation that looks up, or how many classes; None where that is not known."""
    name, given = name_of(node).rstrip("_"), [*node.args, None, None]
    if name in ("cross_entropy", "nll_loss"):
        scores = tensor_of(given[0])
        return None if scores is None or scores.dim() == 0 else scores.shape[min(1, scores.dim() - 1)]
    if name == "embedding":
        weight = tensor_of(node.kwargs.get("weight", given[1]))
        return weight.shape[0] if weight is not None and node.target is torch.nn.functional.embedding else None
    if name == "one_hot":
        return node.kwargs.get("num_classes", given[1])
    table, dimension = tensor_of(given[0]), _along(node).get("dim")
    return table.shape[dimension] if table is not None and table.dim() > 0 and type(dimension) is int else None


def _along(node: torch.fx.Node) -> dict[str, Any]:
    """What the operation is given behind its table, by name; nothing of one that goes along no dimension."""
    names = _ALONG_A_DIMENSION.get(name_of(node).rstrip("_"))
    return {} if names is None else {**dict(zip(names, node.args[1:], strict=False)), **node.kwargs}


def is_inside(trace: Trace, node: torch.fx.Node) -> bool:
    """Is each index of the operation one that is there, whatever the data is?"""
    name = name_of(node).rstrip("_")
    if not is_of_torch(node) or not node.args:
        return False
    if name in _ALONG_A_DIMENSION:
        given, size = _along(node), size_of_table(node)
        index = given.get("index", given.get("indices"))
        found = tensor_of(index)
        is_taken = found is not None and (found.dtype is torch.int64 or name in _SHORT)
        return size is not None and "out" not in given and is_taken and _is_below(trace, index, size)
    if name == "embedding":
        norm = node.kwargs.get("max_norm", node.args[3] if len(node.args) > 3 else None)  # with one it writes
        size = size_of_table(node)
        return len(node.args) > 1 and norm is None and size is not None and _is_below(trace, node.args[0], size)
    if name not in ("getitem", "setitem"):
        return False
    places = places_of_item(node)
    return places is not None and all(_is_below(trace, place, size) for place, size in places)


def places_of_item(node: torch.fx.Node) -> list[tuple[torch.fx.Node, Any]] | None:
    """The places and masks in an index, each with the size of its dimension; None of an index of another kind."""
    table, parts = tensor_of(node.args[0]), parts_of(node)
    if table is None or parts is None:
        return None
    sized = zip(parts, table.shape, strict=False)  # an index may leave the last dimensions out
    return [(part, size) for part, size in sized if isinstance(part, torch.fx.Node)]


def parts_of(node: torch.fx.Node) -> list[Any] | None:
    """What an index has for each dimension: places, masks, slices, and numbers that are there; None of another one."""
    table, index = tensor_of(node.args[0]), node.args[1]
    listed = isinstance(index, (tuple, list) if name_of(node) == "index_put" else tuple)
    parts = [part for part in (index if listed else (index,)) if part is not None]
    if table is None or len(parts) > table.dim() or not all(map(_is_part, parts, table.shape)):
        return None
    return parts


def _is_part(part: Any, size: Any) -> bool:
    if isinstance(part, torch.fx.Node):
        fake = tensor_of(part)
        if fake is not None and fake.dtype is torch.bool:
            return fake.dim() == 1 and type(size) is int and type(fake.shape[0]) is int  # the trace has compared them
        return fake is not None and fake.dtype in (torch.int32, torch.int64)
    return isinstance(part, slice) or (type(part) is int and type(size) is int)  # the trace has looked at that


def _is_below(trace: Trace, index: Any, size: Any) -> bool:
    """Are its elements at least 0, and below the size?"""
    fake = tensor_of(index)
    if fake is None or fake.dtype not in (torch.int32, torch.int64):
        return False
    if type(size) is not int:
        return _is_order_of(index, size)
    found = range_of(trace, index)
    return found is not None and found.low >= 0 and found.high < size


def _is_order_of(index: torch.fx.Node, size: Any) -> bool:
    """Are the elements the places, by `sort` or `argsort`, of a tensor (size,) in order, whatever the size is?"""
    node = index
    if node.target is operator.getitem and node.args[1] == 1 and isinstance(node.args[0], torch.fx.Node):
        node = node.args[0]
    is_sorting = name_of(node) == ("argsort" if node is index else "sort") and "out" not in node.kwargs
    given = tensor_of(node.args[0]) if is_sorting and node.args else None
    is_order = given is not None and given.dim() == 1 and same_sizes(given.shape, (size,)) is True
    return is_order and is_of_torch(node) and stay([index], index.graph.nodes)


def tensor_of(node: Any) -> torch.Tensor | None:
    """The fake tensor of a node that gives one, and nothing else."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None
