"""Between which numbers the places lie that an operation gives: ``x.argmax(1)`` is below the size of dimension 1."""

from __future__ import annotations

from typing import Any

import torch

from .operations import facts_of, name_of

# Where each has its dimension among its arguments, and which one it takes by default; None: all of them.
_FINDING: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("argmax", "argmin"), (1, None)),
    "argsort": (1, -1),
}
# They give two tensors, the second one of places.
FINDING_TOO: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("cummax", "cummin", "max", "median", "min"), (1, None)),
    **dict.fromkeys(("mode", "sort"), (1, -1)),
    **dict.fromkeys(("kthvalue", "topk"), (2, -1)),
}
_LISTING = frozenset({"argwhere", "nonzero"})  # of the places, each is below the size of its dimension


def bounds(node: torch.fx.Node) -> tuple[int, int] | None:
    """The least and the greatest that it may give; None where nothing is known."""
    name, given = name_of(node), node.args[0] if node.args else None
    if name == "getitem" and isinstance(given, torch.fx.Node) and isinstance(given.meta.get("example_value"), tuple):
        if not facts_of(given).is_of_torch:
            return None
        if name_of(given) in _LISTING or (name_of(given) == "where" and len(given.args) == 1):
            return _among(given, node.args[1])
        is_second = node.args[1] == 1 and name_of(given) in FINDING_TOO
        return _below(given, *FINDING_TOO[name_of(given)]) if is_second else None
    if name in _LISTING:
        return _among(node, None)
    if name in _FINDING:
        return _below(node, *_FINDING[name])
    if name == "multinomial":
        return _below(node, len(node.args), -1)
    if name == "randperm":
        return (0, given - 1) if type(given) is int and given > 0 else None
    if name == "remainder" and len(node.args) == 2:
        divisor = node.args[1]
        return (0, divisor - 1) if type(divisor) is int and divisor > 0 else None
    if name in ("clamp", "clip"):
        ends: Any = [node.kwargs.get(end, [*node.args, None, None][place]) for place, end in ((1, "min"), (2, "max"))]
        return (min(ends), ends[1]) if all(type(end) is int for end in ends) else None
    return None


def _below(node: torch.fx.Node, position: int, default: int | None) -> tuple[int, int] | None:
    """Below the size of the dimension that it looks through, of its first operand."""
    given = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
    dimension = node.kwargs.get("dim", node.args[position] if len(node.args) > position else default)
    if not isinstance(given, torch.Tensor) or not (dimension is None or type(dimension) is int):
        return None
    size = 1 if given.dim() == 0 else given.numel() if dimension is None else given.shape[dimension]
    return (0, size - 1) if type(size) is int and size > 0 else None


def _among(node: torch.fx.Node, dimension: Any) -> tuple[int, int] | None:
    """Below the size of that dimension of its operand; None: of the largest."""
    given = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
    sizes = [*given.shape] if isinstance(given, torch.Tensor) else []
    if type(dimension) is int and 0 <= dimension < len(sizes):
        sizes = [sizes[dimension]]
    elif dimension is not None:
        return None
    return (0, max(sizes) - 1) if sizes and all(type(size) is int and size > 0 for size in sizes) else None
