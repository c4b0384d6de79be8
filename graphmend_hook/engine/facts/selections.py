"""Operations on tensors of which the data decides the sizes: those that can fail on no data, nor for want of any.

They are those that select by a mask, or look up where it is true, and what calculates with what was selected.  That the
sizes of two tensors fit is asserted by the graph where nobody knows it: then the frame runs as it was written.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import is_unbacked, same_sizes
from .lookups import is_inside, tensor_of
from .operations import divides_whole_numbers, is_of_torch, is_total, name_of
from .writes import fakes_of, memory_of, written_by

_PLACES = frozenset({"argwhere", "nonzero"})
# Of sizes, which are whole numbers of Python's.
_CALCULATED = frozenset(
    {*(operator.add, operator.sub, operator.mul, operator.neg), *(torch.sym_max, torch.sym_min, torch.sym_not)}
    | {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.getitem}
)
_SIZES = frozenset({"numel", "shape", "size", "sym_size", "sym_numel"})


def has_open_sizes(node: torch.fx.Node) -> bool:
    """Does the data decide a size of what it gives, or of what it is given?"""
    return any(is_unbacked(fake.shape) for each in (node, *node.all_input_nodes) for fake in fakes_of(each))


def is_harmless(trace: Trace, node: torch.fx.Node) -> bool:
    """Is it one of those operations?"""
    if isinstance(node.meta.get("example_value"), (torch.SymInt, torch.SymBool, torch.Size)):
        return node.target in _CALCULATED or name_of(node) in _SIZES
    if not is_of_torch(node) or divides_whole_numbers(node) or "out" in node.kwargs:
        return False
    name = name_of(node)
    if name in _PLACES or (name == "where" and len(node.args) == 1):
        return True
    if name == "getitem" and (masks := _masks(node.args[1])):
        return _fits(node, masks)
    if name == "getitem" and isinstance(node.args[0], torch.fx.Node) and tensor_of(node.args[0]) is None:
        return True  # one of several results
    if name in ("getitem", "index_select"):
        indices = [each for each in node.all_input_nodes[1:] if tensor_of(each) is not None]
        return is_inside(trace, node) if indices else is_total(node)
    return is_total(node)


def fills(trace: Trace, node: torch.fx.Node) -> bool:
    """Is it ``target[mask] = value`` of as many rows as the mask selects, since the same mask has selected them?"""
    if node.target is not operator.setitem or not (masks := _masks(node.args[1])) or not _fits(node, masks):
        return False
    mask, value = node.args[1], node.args[2]
    if not isinstance(mask, torch.fx.Node) or not isinstance(value, torch.fx.Node):
        return False
    target, source, selected = (tensor_of(each) for each in (node.args[0], value, mask))
    if target is None or source is None or selected is None or source.dtype is not target.dtype or source.dim() == 0:
        return False
    rows, *others = source.shape
    return same_sizes(others, target.shape[selected.dim() :]) is True and _selects(trace, mask, rows)


def _selects(trace: Trace, mask: torch.fx.Node, rows: Any) -> bool:
    """Is that the number of what the mask selects?  It was then, and nothing has written to the mask."""
    if not isinstance(rows, torch.SymInt):
        return False
    symbol, memory = rows.node.expr, memory_of([mask])
    if any(not memory.isdisjoint(written_by(node)) for node in trace.graph.nodes):
        return False
    return any(
        isinstance(fake.shape[0], torch.SymInt) and fake.shape[0].node.expr == symbol
        for user in mask.users
        if user.target is operator.getitem and user.args[1] is mask
        for fake in fakes_of(user)
    )


def _masks(index: Any) -> list[torch.fx.Node]:
    parts = index if isinstance(index, tuple) else (index,)
    nodes = [part for part in parts if isinstance(part, torch.fx.Node)]
    return [node for node in nodes if [fake.dtype for fake in fakes_of(node)] == [torch.bool]]


def _fits(node: torch.fx.Node, masks: list[torch.fx.Node]) -> bool:
    """Is the index one mask, which has the sizes of what it selects from, and slices of everything beside it?"""
    parts = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    table, mask = tensor_of(node.args[0]), tensor_of(masks[0])
    if table is None or mask is None or mask.dim() == 0 or len(masks) > 1:
        return False
    return all(part == slice(None) for part in parts if part is not masks[0]) and fits_beside_others(node, masks[0])


def fits_beside_others(node: torch.fx.Node, mask: torch.fx.Node) -> bool:
    """Has the mask, a part of the index, the sizes of what it selects from, whatever symbols are?"""
    parts = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    table, selecting = tensor_of(node.args[0]), tensor_of(mask)
    if table is None or selecting is None:
        return False
    before = [part for part in parts[: parts.index(mask)] if part is not None]
    if Ellipsis in before:
        return False
    return same_sizes(selecting.shape, table.shape[len(before) : len(before) + selecting.dim()]) is True
