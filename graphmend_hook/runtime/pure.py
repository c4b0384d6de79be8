"""Operations of a graph whose results follow from their operands, so that they may be run while tracing; as data."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..dynamo.writes import is_of_numpy, name_of, only_computes

_MOST_ELEMENTS = 2**20  # of a tensor


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HOMES = (torch, torch.nn.functional, torch._C._nn)
# Functions of torch and methods of Tensor whose result follows from their operands.
_PURE = names(
    "BoolTensor FloatTensor IntTensor LongTensor abs add all amax amin any arange argmax argmin argsort as_tensor "
    "atleast_1d bitwise_and bitwise_not bitwise_or bool bucketize cat ceil clamp clamp_max clamp_min clip clone "
    "concat contiguous count_nonzero cpu cumprod cumsum detach diff div double eq expand eye flatten flip float floor "
    "floor_divide full full_like gather ge greater greater_equal gt half index_select int interpolate isfinite isin "
    "isinf isnan le less less_equal linspace logical_and logical_not logical_or logical_xor long lt masked_fill max "
    "maximum mean meshgrid min minimum mod mul multiply narrow ne neg new_full new_ones new_tensor new_zeros nonzero "
    "not_equal numel ones ones_like outer pad permute pow prod ravel remainder repeat repeat_interleave "
    "reshape roll round scalar_tensor searchsorted select sort split sqrt squeeze stack sub subtract sum t tensor "
    "tile to transpose tril triu true_divide trunc type type_as unbind unfold unique_consecutive unsqueeze view "
    "view_as where zeros zeros_like"
)
_OPERATORS = names("abs add and_ eq floordiv ge getitem gt invert le lt mod mul ne neg or_ pos pow sub truediv xor")

# Those that write to their first operand.
_WRITING = names("add_ clamp_ copy_ div_ fill_ masked_fill_ mul_ sub_ zero_")
_WRITING_OPERATORS = (
    *(operator.setitem, operator.iadd, operator.isub, operator.imul, operator.itruediv),
    *(operator.iand, operator.ior, operator.ixor),
)


def is_pure(node: torch.fx.Node) -> bool:
    """Does the result of the operation follow from its operands, cheaply?"""
    if not only_computes(node):
        return False
    if node.op == "call_method":
        return name_of(node) in _PURE
    if is_of_numpy(node):
        return True
    name = name_of(node)
    return node.op == "call_function" and (
        (getattr(operator, name, None) is node.target and name in _OPERATORS)
        or (name in _PURE and any(getattr(home, name, None) is node.target for home in _HOMES))
    )


def only_writes(node: torch.fx.Node) -> bool:
    """Is it an operation that writes to its first operand what follows from all of them?"""
    if node.op == "call_method":
        return node.target in _WRITING
    return node.op == "call_function" and node.target in _WRITING_OPERATORS


def is_small(value: Any) -> bool:
    """Is it a number, or a tensor of fixed sizes and not too many elements, or are they?"""
    if isinstance(value, (tuple, list)):
        return all(map(is_small, value))
    if isinstance(value, torch.Tensor):
        sizes = [size for size in value.shape if type(size) is int]
        return len(sizes) == value.dim() and bool(value.numel() <= _MOST_ELEMENTS)
    return type(value) in (int, float, bool)
