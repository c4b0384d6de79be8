"""Functions of tensors with ways of their own, and a module whose weight is one.  Imported twice: as is, and mended."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map

logger = logging.getLogger("subclass_cases")
aten = torch.ops.aten
VIEWS = (aten.detach.default, aten.alias.default, aten.t.default)


class Wrapper(torch.Tensor):  # type: ignore[misc]
    """A tensor around another one, with a table of four operations."""

    TABLE = (aten.detach.default, aten.alias.default, aten.mul.Tensor, aten.add.Tensor)

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, strides=held.stride())

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def __repr__(self) -> str:  # type: ignore[override]
        return "Wrapper"  # of the elements it would need operations that the table lacks

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @classmethod
    def __tensor_unflatten__(cls, parts: Any, *_: object) -> Wrapper:
        return cls(parts["held"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        if function not in cls.TABLE:
            raise NotImplementedError(f"{cls.__name__} has no {function}")
        given, named = tree_map(lambda each: each.held if isinstance(each, Wrapper) else each, (args, kwargs or {}))
        result = cls.given(function, function(*given, **named))
        return return_and_correct_aliasing(function, args, kwargs, result) if function in VIEWS else result

    @classmethod
    def given(cls, _function: Any, result: torch.Tensor) -> torch.Tensor:
        return cls(result)


class Weight(Wrapper):
    """As weights in few bits are: a product with one is a plain tensor."""

    TABLE = (aten.detach.default, aten.alias.default, aten.t.default, aten.mm.default, aten.addmm.default)

    @classmethod
    def given(cls, function: Any, result: torch.Tensor) -> torch.Tensor:
        return cls(result) if function in VIEWS else result


class Told(torch.Tensor):  # type: ignore[misc]
    """A tensor that sees each function of torch."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(function, types, args, kwargs or {})


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        held = torch.linspace(-1, 1, 9).reshape(3, 3)
        self.weight = torch.nn.Parameter(Weight(held), requires_grad=False)
        self.register_buffer("table", Wrapper(held))

    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        scaled = self.table * 2
        y = torch.nn.functional.linear(torch.relu(x @ self.weight.t()), self.weight)
        if torch.isinf(y).any():
            y = torch.clamp(y, min=-5, max=5)
        logger.warning("%d rows", y.shape[0])
        if torch.isnan(y).any():
            raise ValueError(f"not a number: {y[0, 0].item()}")
        return x + y, scaled


def beside(w: Any, x: torch.Tensor) -> Any:
    y = w * 2
    if torch.isinf(x).any():
        x = torch.clamp(x, min=-5, max=5)
    if torch.isnan(x).any():
        raise ValueError(f"not a number: {x}")
    return y * x.sum(), x


def behind_a_draw(w: Any, x: torch.Tensor) -> Any:
    y = w * torch.rand_like(x)
    if not (x < 1e6).all():
        raise ValueError("large")
    return y + 1, x * 2


def asserted(w: Any, x: torch.Tensor) -> Any:
    assert (x < 1e6).all(), "large"
    return w + x, x


def unused(w: Any, x: torch.Tensor) -> Any:
    w = w * 2 + x
    if w.held.sum() > 1e6:
        raise ValueError("large")
    return x, x


def of_itself(w: Any, x: torch.Tensor) -> Any:
    if (w > 0).all():
        raise ValueError("all of it")
    return x, x


def numbers_of_itself(w: Any, x: torch.Tensor) -> Any:
    if w.sum().item() > x.shape[0]:
        x = x + 1
    return x, x


def checked(w: Any, x: torch.Tensor) -> Any:
    torch._check_tensor_all(w, lambda: "not all")
    return x, x


def rows_of_itself(w: Any, x: torch.Tensor) -> Any:
    return w[(x > 1e9).sum()], x


def selected_from_itself(w: Any, x: torch.Tensor) -> Any:
    return w[x > 0], x


def written_behind_its_back(w: Any, x: torch.Tensor) -> Any:
    y = w.held
    z = y if x.sum() > 0 else x
    y.add_(1)
    return z + 0, w * 1
