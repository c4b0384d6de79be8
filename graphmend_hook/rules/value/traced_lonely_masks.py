"""Masks without dimensions: what they select, or are written under, is a view of all of the tensor or nothing.

They are made masks of one element, of which Dynamo has a shape; the tensor becomes a view with a dimension more.
"""

from __future__ import annotations

from typing import Any

import torch

from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import (
    Variable,
    fake_of,
    is_known,
    is_plain_tensor,
    is_sure,
    is_unbacked,
    tensor_node,
    type_of,
)
from ...engine.door.variables import is_tensor as is_any_tensor
from ...engine.facts.operations import name_of


def _has_views(trace: Trace, tensor: Variable) -> bool:
    """May a view of it be made?  AOTAutograd fails on one that a graph makes which enters inference mode."""
    switches = any(name_of(node) == "_enter_inference_mode" for node in trace.graph.nodes)
    return is_plain_tensor(tensor) and not switches


@question(otherwise=False)
def may_be_viewed(trace: Trace, tensor: Variable) -> bool:
    """May what is selected be selected from a view of the tensor?"""
    return _has_views(trace, tensor)


@question(otherwise=False)
def may_fill(trace: Trace, container: Variable, value: Variable) -> bool:
    """Can the value be written to a view of all of the tensor, for certain?"""
    filled = fake_of(container)
    if not _has_views(trace, container) or is_unbacked(filled.shape) or 0 in filled.stride():
        return False
    if filled.requires_grad and filled.is_leaf and torch.is_grad_enabled():
        return False
    if not is_any_tensor(value):
        kind, dtype = type_of(value), filled.dtype
        if kind is not int:
            return kind is bool or (kind is float and dtype.is_floating_point)
        limits = torch.iinfo(torch.int8 if dtype.is_floating_point or dtype is torch.bool else dtype)
        return is_sure(limits.min <= fake_of(value)) and is_sure(fake_of(value) <= limits.max)
    given = fake_of(value)
    if not is_plain_tensor(value) or given.dtype is not filled.dtype or given.device != filled.device:
        return False
    sizes = given.shape
    if given.dim() > filled.dim():  # the first says how often
        if not is_unbacked(sizes[0]) and not is_known(sizes[0] == 1):
            return False
        sizes = sizes[1:]
    return given.dim() <= filled.dim() + 1 and all(
        not is_unbacked(size) and (is_known(size == 1) or is_known(size == place))
        for size, place in zip(reversed(sizes), reversed(filled.shape), strict=False)
    )


def widened(mask: Any) -> Any:
    """A mask without dimensions as one of one element: torch has a symbol for what that selects, the same each time."""
    found = _known_widened(mask)
    if found is None:
        found = mask.reshape(1)
        _remember_widened(mask, found)
    return found


class _Widened(dict[Any, Variable]):
    """By node of the graph, the mask of one element that it is elsewhere."""


@question(otherwise=None)
def _known_widened(trace: Trace, mask: Variable) -> Any:
    return None if trace.is_in_a_body else trace.compilation.of(_Widened).get(tensor_node(mask))


@question(otherwise=None)
def _remember_widened(trace: Trace, mask: Variable, found: Variable) -> None:
    if not trace.is_in_a_body:
        trace.compilation.of(_Widened)[tensor_node(mask)] = found
