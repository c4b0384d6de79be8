"""What the truth of a predicate says of masks: where ``bad.any()`` is false, ``x[~bad]`` is all of `x`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..door.tracer import Trace
from ..door.variables import is_contiguous, same_sizes
from .lookups import tensor_of
from .operations import is_plain, name_of
from .writes import stay

HANDING_ON = frozenset({"clone", "detach", "reshape", "view"})
_NEGATING = frozenset({operator.invert, torch.logical_not, torch.bitwise_not, "logical_not", "bitwise_not"})
_JOINING: dict[Any, bool] = {  # by what both are where what they are joined to is that
    **dict.fromkeys((operator.or_, torch.logical_or, torch.bitwise_or, "logical_or", "bitwise_or"), False),
    **dict.fromkeys((operator.and_, torch.logical_and, torch.bitwise_and, "logical_and", "bitwise_and"), True),
}
_OF_ALL = {"any": False, "all": True}  # by what each element is where the answer is that
_DEEPEST = 8

Said = list[tuple[torch.fx.Node, bool]]  # masks, and what each of their elements is


def selects_all(
    trace: Trace, selected: torch.fx.Node, whole: torch.fx.Node, predicate: torch.fx.Node, holds: bool
) -> bool:
    """Where the predicate is what `holds` says, is ``whole[mask]`` all rows of the whole?"""
    index: Any = selected.args[1] if selected.target is operator.getitem and selected.args[0] is whole else None
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    table, rows = tensor_of(whole), tensor_of(mask)
    if table is None or rows is None or rows.dtype is not torch.bool or rows.dim() != 1 or not is_contiguous(table):
        return False
    said = [*_said(predicate, holds)]
    if not _is_everywhere(mask, True, said, _DEEPEST):
        return False
    return stay([whole, *_below(mask, *(node for node, _ in said))], trace.graph.nodes)


def is_same_mask(trace: Trace, one: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Is it one mask, or one that is calculated as the other is, of tensors to which nothing has written?"""
    return one is not other and is_same(trace, one, other)


def is_same(trace: Trace, one: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Is the one tensor the other, or calculated as that is, of tensors to which nothing has written?"""
    return _are_same(one, other, _DEEPEST) and stay(_below(one, other), trace.graph.nodes)


def _said(predicate: torch.fx.Node, holds: bool) -> Iterator[tuple[torch.fx.Node, bool]]:
    """What the predicate, a tensor of one element, says of masks."""
    if _is_made_by(predicate, HANDING_ON) and predicate.op == "call_method":
        yield from _said(predicate.args[0], holds)
    elif predicate.target in _NEGATING and len(predicate.args) == 1:
        yield from _said(predicate.args[0], not holds)
    elif _joins(predicate, holds):
        for operand in predicate.all_input_nodes:
            yield from _said(operand, holds)
    elif _OF_ALL.get(name_of(predicate)) is holds and len(predicate.args) == 1 and not predicate.kwargs:
        yield from _said_of_elements(predicate.args[0], holds)


def _said_of_elements(mask: torch.fx.Node, value: bool) -> Iterator[tuple[torch.fx.Node, bool]]:
    yield mask, value
    if not _is_mask(mask):
        return
    if mask.target in _NEGATING and len(mask.args) == 1:
        yield from _said_of_elements(mask.args[0], not value)
    elif _joins(mask, value):
        for operand in mask.all_input_nodes:
            if _has_shape_of(operand, mask):  # else it may be repeated no times
                yield from _said_of_elements(operand, value)


def _is_everywhere(mask: Any, value: bool, said: Said, depth: int) -> bool:
    """Does it follow that each element of the mask is that?"""
    if depth == 0 or not isinstance(mask, torch.fx.Node) or not _is_mask(mask):
        return False
    if any(value is known and _are_same(mask, node, _DEEPEST) for node, known in said):
        return True
    if mask.target in _NEGATING and len(mask.args) == 1:
        return _is_everywhere(mask.args[0], not value, said, depth - 1)
    both = _JOINING.get(mask.target)
    if both is None or not _joins(mask, both):
        return False
    found = [_is_everywhere(operand, value, said, depth - 1) for operand in mask.args]
    return all(found) if both is value else any(found)


def _joins(node: torch.fx.Node, both: bool) -> bool:
    """Does it join two tensors, both of which are that where it is?"""
    operands = [tensor_of(each) for each in node.args]
    return _JOINING.get(node.target) is both and len(operands) == 2 and None not in operands and not node.kwargs


def _has_shape_of(one: torch.fx.Node, other: torch.fx.Node) -> bool:
    fakes = tensor_of(one), tensor_of(other)
    return None not in fakes and same_sizes(fakes[0].shape, fakes[1].shape) is True  # type: ignore[union-attr]


def _is_mask(node: torch.fx.Node) -> bool:
    """Is it a tensor of truths?  Of whole numbers ``~`` is something else."""
    fakes = [
        tensor_of(each) for each in (node, *(node.args if node.target in _NEGATING or node.target in _JOINING else ()))
    ]
    return all(fake is not None and fake.dtype is torch.bool for fake in fakes)


def _is_made_by(node: torch.fx.Node, names: Iterable[str]) -> bool:
    return node.op.startswith("call") and name_of(node) in names and bool(node.args)


def _are_same(one: Any, other: Any, depth: int) -> bool:
    """Is it the same node, or one that calculates the same of the same?"""
    if one is other:
        return True
    if not isinstance(one, torch.fx.Node) or not isinstance(other, torch.fx.Node):
        return type(one) is type(other) and repr(one) == repr(other)  # 0.0 is equal to -0.0
    if (spread := _spread(one)) is not None and (too := _spread(other)) is not None and _has_shape_of(one, other):
        return _are_same(spread, too, depth - 1)
    if depth == 0 or (one.op, one.target) != (other.op, other.target) or not one.op.startswith("call"):
        return False
    if (
        len(one.args) != len(other.args)
        or repr(one.kwargs) != repr(other.kwargs)
        or not (is_plain(one) and is_plain(other))
    ):
        return False
    return all(_are_same(*pair, depth - 1) for pair in zip(one.args, other.args, strict=True))


def _spread(node: torch.fx.Node) -> torch.fx.Node | None:
    """The operand of `torch.broadcast_tensors` that it is in another shape."""
    given, place = node.args if node.target is operator.getitem else (None, None)
    is_spread = isinstance(given, torch.fx.Node) and given.target is torch.broadcast_tensors
    operand = given.args[place] if is_spread and type(place) is int else None  # type: ignore[union-attr]
    return operand if isinstance(operand, torch.fx.Node) else None


def _below(*nodes: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes, and what they are calculated from, as deep as they are compared."""
    found = [*nodes]
    for node in found:
        found += [each for each in node.all_input_nodes if each not in found and node.op.startswith("call")]
    return found
