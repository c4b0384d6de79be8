"""Operations on tensors of which the data decides the sizes: those that can fail on no data, nor for want of any.

They are those that select by a mask, or look up where it is true, and what calculates with what was selected.  That the
sizes of two tensors fit is asserted by the graph where nobody knows it: then the frame runs as it was written.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import is_known, is_unbacked, same_sizes
from .lookups import is_inside, tensor_of
from .operations import divides_whole_numbers, is_of_torch, is_steady, is_total, name_of
from .truths import HANDING_ON
from .writes import fakes_of, stay

_PLACES = frozenset({"argwhere", "nonzero"})
# Of sizes, which are whole numbers of Python's.
_CALCULATED = frozenset(
    {*(operator.add, operator.sub, operator.mul, operator.neg), *(torch.sym_max, torch.sym_min, torch.sym_not)}
    | {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.getitem}
)
# Comparisons that say whether there is anything, by what they give.
ASKING_FOR_SOME = {
    True: {operator.gt: 0, operator.ne: 0, operator.ge: 1},
    False: {operator.eq: 0, operator.lt: 1, operator.le: 0},
}
_NEGATING = frozenset({operator.invert, torch.logical_not})
_SIZES = frozenset({"numel", "shape", "size", "sym_size", "sym_numel"})


def empty_unless(predicate: torch.fx.Node, holds: bool) -> set[Any]:
    """The sizes, as symbols of sympy, that are 0 where the predicate is not what `holds` says."""
    while name_of(predicate) in HANDING_ON or predicate.target in _NEGATING:
        holds ^= predicate.target in _NEGATING
        predicate = predicate.args[0]
    if name_of(predicate) == "any" and len(predicate.args) == 1:
        return sizes_selected_by(predicate.args[0]) if holds else set()
    least = ASKING_FOR_SOME[holds].get(predicate.target)
    if least is not None and predicate.args[1:] == (least,):
        return _sizes_counted_by(predicate.args[0], predicate.target in (operator.eq, operator.ne))
    return set()


def _sizes_counted_by(count: Any, is_zero: bool) -> set[Any]:
    """Those that are 0 where the count is, a tensor or a number.  is_zero: it is 0 then, else it may be below 0."""
    name = name_of(count) if isinstance(count, torch.fx.Node) else ""
    if name in ("sum", "count_nonzero") and len(count.args) == 1 and not count.kwargs:
        return sizes_selected_by(count.args[0])
    is_handed_on = name in ("scalar_tensor", "item", "sym_int", *HANDING_ON) or (
        name == "to" and _has_same_dtype(count)
    )
    behind = _sizes_counted_by(count.args[0], is_zero) if is_handed_on else set()
    value = count.meta.get("example_value") if isinstance(count, torch.fx.Node) else None
    if not isinstance(value, torch.SymInt) or not (is_zero or is_known(value >= 0)):
        return behind
    size = value.node.expr
    return behind | {each for each in size.free_symbols if len(size.free_symbols) == 1 and (size / each).is_positive}


def _has_same_dtype(node: torch.fx.Node) -> bool:
    given, made = tensor_of(node.args[0]), tensor_of(node)
    return given is not None and made is not None and given.dtype is made.dtype


def sizes_selected_by(mask: Any) -> set[Any]:
    """The numbers of rows that have been selected by the mask, or are its places."""
    fake = tensor_of(mask)
    if fake is None or fake.dtype is not torch.bool or not stay([mask], mask.graph.nodes):
        return set()
    found = [user for user in mask.users if user.target is operator.getitem and user.args[1] is mask]
    listing = [user for user in mask.users if name_of(user) in (*_PLACES, "where") and len(user.args) == 1]
    found += [*listing, *(item for user in listing for item in user.users if item.target is operator.getitem)]
    sizes = [each.shape[0] for user in found if (each := tensor_of(user)) is not None and each.dim() > 0]
    return {symbol for size in sizes if isinstance(size, torch.SymInt) for symbol in size.node.expr.free_symbols}


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
    return is_total(node) or adds_rows(trace, node) or _takes_as_many(node)


def _takes_as_many(node: torch.fx.Node) -> bool:
    """Is it ``topk`` of as many as there are for certain?"""
    given, count = tensor_of(node.args[0]), node.kwargs.get("k", node.args[1] if len(node.args) > 1 else None)
    number = count.meta.get("example_value") if isinstance(count, torch.fx.Node) else count
    if name_of(node) != "topk" or given is None or given.dim() == 0 or not isinstance(number, (int, torch.SymInt)):
        return False
    dimension = node.kwargs.get("dim", node.args[2] if len(node.args) > 2 else -1)
    size = given.shape[dimension] if isinstance(dimension, int) else 0
    return is_steady(node) and is_known(number >= 0) and is_known(number <= size)


def adds_rows(trace: Trace, node: torch.fx.Node) -> bool:
    """Is it ``index_add`` or ``index_copy`` of as many rows as there are places, each of which is there?"""
    if name_of(node).rstrip("_") not in ("index_add", "index_copy") or len(node.args) != 4 or node.kwargs:
        return False
    target, index, source = (tensor_of(node.args[place]) for place in (0, 2, 3))
    dimension: Any = node.args[1]
    if target is None or index is None or source is None or not is_inside(trace, node) or index.dim() != 1:
        return False
    given = [*target.shape[:dimension], index.shape[0], *target.shape[dimension:][1:]]
    return source.dtype is target.dtype and same_sizes(source.shape, given) is True


def fills(trace: Trace, node: torch.fx.Node) -> bool:
    """Is it ``target[mask] = value`` of as many rows as the mask selects, since the same mask has selected them?

    Or ``target[places] = value`` of as many rows as there are places, each of which is there.
    """
    if node.target is not operator.setitem:
        return False
    if not (masks := _masks(node.args[1])):
        target, index, value = (tensor_of(each) for each in node.args[:3])
        if target is None or index is None or not is_inside(trace, node):
            return False
        if not isinstance(node.args[2], torch.fx.Node):
            return True
        is_like = value is not None and value.dtype is target.dtype
        return is_like and same_sizes(value.shape, (*index.shape, *target.shape[1:])) is True  # type: ignore[union-attr]
    if not _fits(node, masks):
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
    symbol = rows.node.expr
    if not stay([mask], trace.graph.nodes):
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
