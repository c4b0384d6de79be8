"""Between which numbers the whole numbers of a tensor lie, by what they are made of: so a place is known to be there.

``torch.cat([start, scores.argmax(1)])`` holds places below the size of the scores, if `start` does.  The bounds are
whole numbers of Python, and nothing is said where the tensor's dtype could not hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from .operations import name_of
from .places import FINDING_TOO

Whole = tuple[int, int]
# Where those have the number that they are filled with; the others are filled with one number.
_FILLING = {"full": 1, "full_like": 1, "new_full": 2}
_FILLED = {f"{prefix}{name}": value for name, value in (("zeros", 0), ("ones", 1)) for prefix in ("", "new_")}
_FILLED |= {f"{name}_like": value for name, value in (("zeros", 0), ("ones", 1))}
# They give elements of their first operand.
_TAKING = frozenset(
    {
        *("expand_as", "flip", "gather", "getitem", "index_select", "movedim", "narrow", "permute", "repeat"),
        *("reshape_as", "roll", "select", "t", "take_along_dim", "tile", "transpose", "view_as", "T", "mT"),
    }
)
_PARTING = frozenset({"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
_JOINING = frozenset({"cat", "concat", "hstack", "stack", "vstack"})


def whole_range(node: torch.fx.Node, value: torch.Tensor, of: Callable[[Any], Whole | None]) -> Whole | None:
    """The least and the greatest; None where nothing is known.

    of: those of an operand, a number or a node.
    """
    limits = torch.iinfo(value.dtype)

    def fitting(operand: Any) -> Whole | None:
        found = of(operand)
        return found if found is not None and limits.min <= found[0] and found[1] <= limits.max else None

    found = _made(node) or _calculated(node, fitting)  # an operand is converted to the dtype of the result first
    return found if found is not None and limits.min <= found[0] and found[1] <= limits.max else None


def _made(node: torch.fx.Node) -> Whole | None:
    """Of a tensor that is made of numbers of Python."""
    name, args = name_of(node), node.args
    if name in _FILLED:
        return _FILLED[name], _FILLED[name]
    if name in _FILLING:
        place = _FILLING[name]
        return _spanned([node.kwargs.get("fill_value", args[place] if len(args) > place else None)])
    if name in ("tensor", "new_tensor"):
        return _spanned(tree_leaves(args[int(name == "new_tensor") :][:1]))
    if name == "arange" and all(type(number) is int for number in args) and {*node.kwargs} <= {"device", "dtype"}:
        numbers = range(*args) if 0 not in args[2:] else range(0)
        return _spanned([numbers[0], numbers[-1]]) if numbers else None
    return None


def _calculated(node: torch.fx.Node, of: Callable[[Any], Whole | None]) -> Whole | None:
    name, args = name_of(node), node.args
    if not args:
        return None
    if name in _JOINING:
        return _union([of(each) for each in args[0]] if isinstance(args[0], (tuple, list)) else [])
    if (
        name == "getitem"
        and isinstance(args[0], torch.fx.Node)
        and isinstance(args[0].meta.get("example_value"), tuple)
    ):
        return _of_one(args[0], args[1], of)
    if name in _TAKING:
        return of(args[0])
    if name == "where" and len(args) == 3:
        chosen = args[1] if node.target is torch.where else args[0]  # ``x.where(condition, y)``
        return _union([of(chosen), of(args[2])])
    if name == "masked_fill" and len(args) == 3:
        return _union([of(args[0]), of(args[2])])
    if name in _OF_TWO and len(args) == 2 and not node.kwargs:
        left, right = of(args[0]), of(args[1])
        return None if left is None or right is None else _OF_TWO[name](left, right)
    if name in _COUNTING:
        return _counted(node, of(args[0]))
    return None


def _of_one(given: torch.fx.Node, place: Any, of: Callable[[Any], Whole | None]) -> Whole | None:
    """Of one of several tensors that an operation gives; beside places, it gives elements of its operand."""
    is_part = name_of(given) in _PARTING or (name_of(given) in FINDING_TOO and place == 0)
    return of(given.args[0]) if is_part and given.args else None


def _counted(node: torch.fx.Node, found: Whole | None) -> Whole | None:
    """Of a sum of so many elements, or of each of the sums on the way."""
    given = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
    if found is None or not isinstance(given, torch.Tensor) or type(given.numel()) is not int:
        return None
    return min(0, found[0] * given.numel()), max(0, found[1] * given.numel())


def _product(first: Whole, second: Whole) -> Whole:
    made = [one * other for one in first for other in second]
    return min(made), max(made)


_OF_TWO: dict[str, Callable[[Whole, Whole], Whole]] = {
    "add": lambda first, second: (first[0] + second[0], first[1] + second[1]),
    "sub": lambda first, second: (first[0] - second[1], first[1] - second[0]),
    "mul": _product,
    **dict.fromkeys(
        ("maximum", "clamp_min"), lambda first, second: (max(first[0], second[0]), max(first[1], second[1]))
    ),
    **dict.fromkeys(
        ("minimum", "clamp_max"), lambda first, second: (min(first[0], second[0]), min(first[1], second[1]))
    ),
}
_COUNTING = frozenset({"cumsum", "sum"})


def _union(found: Sequence[Whole | None]) -> Whole | None:
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return min(low for low, _high in known), max(high for _low, high in known)


def _spanned(numbers: Sequence[Any]) -> Whole | None:
    if not numbers or not all(type(number) in (int, bool) or _is_whole(number) for number in numbers):
        return None
    whole = [int(number) for number in numbers]
    return min(whole), max(whole)


def _is_whole(number: Any) -> bool:
    return type(number) is float and math.isfinite(number) and number == int(number)
