"""The operator of graphs that draws random numbers if a region is taken, and leaves the generator as it was if not.

What is drawn, and how, is a text, an operand of the operator: `torch.randn_like` of the first of the tensors that are
other operands is ``["torch", "randn_like", [{"tensor": 0}], {"dict": {}}]``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .operators import define, defined

_NAME = "drawn"


@dataclass
class Draws:
    """How many operators that draw an attempt has: a compiler would merge two that are the same."""

    count: int = 0

    def number(self) -> int:
        """Another one's own number."""
        self.count += 1
        return self.count


class UnknownCallError(Exception):
    """It cannot be made a text."""


def noise(tensor: Tensor, probability: float) -> Tensor:
    """What eager's dropout multiplies the elements of a tensor on a CPU with."""
    return torch.empty_like(tensor).bernoulli_(1 - probability).div_(1 - probability)


def in_place(tensor: Tensor, method: str, *args: Any, **options: Any) -> Tensor:
    """What the method that draws would write to the tensor."""
    found: Tensor = getattr(torch.empty_like(tensor), method)(*args, **options)
    return found


_OURS: dict[str, Callable[..., Any]] = {"noise": noise, "in_place": in_place}
_HOMES: dict[str, Any] = {"torch": torch, "functional": torch.nn.functional, "method": torch.Tensor}


def encoded(function: Any, args: Any, options: Any) -> tuple[str, list[Any], list[Any]]:
    """The call as a text, and the tensors and the sizes among its operands, which are nodes of a graph.

    Raises UnknownCallError where it has operands of other kinds, or the function is none of torch.
    """
    tensors, numbers = list[Any](), list[Any]()
    call = [*_place_of(function), _encoded([*args], tensors, numbers), _encoded({**options}, tensors, numbers)]
    return json.dumps(call), tensors, numbers


def _place_of(function: Any) -> tuple[str, str]:
    if isinstance(function, str):
        return "method", function
    name = getattr(function, "__name__", "")
    if _OURS.get(name) is function:
        return "", name
    home = next((home for home, place in _HOMES.items() if getattr(place, name, None) is function), None)
    if home is None:
        raise UnknownCallError
    return home, name


def _encoded(value: Any, tensors: list[Any], numbers: list[Any]) -> Any:
    if isinstance(value, torch.fx.Node):
        kept, kind = (tensors, "tensor") if isinstance(value.meta["example_value"], Tensor) else (numbers, "number")
        if kind == "number" and not isinstance(value.meta["example_value"], (int, torch.SymInt)):
            raise UnknownCallError
        kept.append(value)
        return {kind: len(kept) - 1}
    if isinstance(value, dict):
        return {"dict": {key: _encoded(each, tensors, numbers) for key, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_encoded(each, tensors, numbers) for each in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).rpartition(".")[2]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    raise UnknownCallError


def _decoded(value: Any, tensors: list[Tensor], numbers: list[int]) -> Any:
    if isinstance(value, list):
        return [_decoded(each, tensors, numbers) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind in ("tensor", "number"):
        return (tensors if kind == "tensor" else numbers)[what]
    if kind == "dict":
        return {key: _decoded(each, tensors, numbers) for key, each in what.items()}
    made = {"dtype": functools.partial(getattr, torch), "device": torch.device, "float": float.fromhex}[kind]
    return made(what)


def _called(call: str, tensors: list[Tensor], numbers: list[int], **more: Any) -> Tensor:
    """What the call gives; more: options, in the place of its own."""
    home, name, args, options = json.loads(call)
    function = getattr(_HOMES[home], name) if home else _OURS[name]
    found: Tensor = function(*_decoded(args, tensors, numbers), **{**_decoded(options, tensors, numbers), **more})
    return found


def _run(
    taken: Tensor, call: str, tensors: list[Tensor], numbers: list[int], is_like_first: bool, _draw: int
) -> Tensor:
    if taken:
        return _called(call, tensors, numbers)
    if is_like_first:
        return torch.zeros_like(tensors[0])
    if tensors:  # which may hold what it would fail on
        found = _called(call, [each.to("meta") for each in tensors], numbers)
    else:
        found = _called(call, [], numbers, device="meta")
    return torch.zeros_like(found, device="cpu")


def _fake(
    _taken: Tensor, call: str, tensors: list[Tensor], numbers: list[int], _is_like_first: bool, _draw: int
) -> Tensor:
    return _called(call, tensors, numbers)


@functools.cache
def operator() -> Any:
    """It gives a new tensor, with no gradient.

    is_like_first: has it the shape, strides and dtype of the first of the tensors?  draw: see `Draws`.
    """
    operands = "Tensor taken, str call, Tensor[] tensors, SymInt[] numbers, bool is_like_first, int draw"
    library = define(_NAME, f"({operands}) -> Tensor", _run, _fake, torch.Tag.nondeterministic_seeded)
    library.impl(_NAME, torch.library.fallthrough_kernel, "Autograd")
    return defined(_NAME)
