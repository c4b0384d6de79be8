"""Programs with one mended statement each, which Dynamo stops at, or does not."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch

X, ARRAY = torch.tensor([1.0, 2.0]), np.ones(2)


def guards_an_array(x: np.ndarray[Any, Any] = ARRAY) -> Any:
    if np.isnan(x).any():
        raise ValueError("not a number")
    return x * 2


def branches_on_an_array(x: np.ndarray[Any, Any] = ARRAY) -> Any:
    if x.sum() > 0:
        x = x + 1
    return x * 2


def guards_a_tensor(x: torch.Tensor = X) -> torch.Tensor:
    if torch.isnan(x).any():
        raise ValueError("not a number")
    return x * 2


def branches_on_a_tensor(x: torch.Tensor = X) -> torch.Tensor:
    if x.sum() > 0:
        x = x + 1
    return x * 2


def has_sides_that_differ(x: torch.Tensor = X) -> torch.Tensor:
    if x.sum() > 0:
        x = x[:1]
    return x * 2


def guards_behind_a_break(x: torch.Tensor = X) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    if torch.isnan(y).any():
        raise ValueError("not a number")
    return y * 2


def has_sides_that_differ_behind_a_break(x: torch.Tensor = X) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    if y.sum() > 0:
        y = y[:1]
    return y * 2


def guards_an_array_behind_a_break(x: np.ndarray[Any, Any] = ARRAY) -> Any:
    y = x + 1
    torch._dynamo.graph_break()
    if np.isnan(y).any():
        raise ValueError("not a number")
    return y * 2


def _checked(x: Any) -> Any:
    if np.isnan(x).any():
        raise ValueError("not a number")
    return x * 2


def guards_an_array_in_a_helper(x: np.ndarray[Any, Any] = ARRAY) -> Any:
    return _checked(x) + 1


def _cut(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x[:1]
    return x


def has_sides_that_differ_in_a_helper(x: torch.Tensor = X) -> torch.Tensor:
    return _cut(x * 2) + 1


class _Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x[:1]
        return x


_INNER = torch.nn.Sequential(_Inner())


def has_sides_that_differ_in_a_module(x: torch.Tensor = X) -> torch.Tensor:
    return _INNER(x * 2) + 1


_compiled = torch.compile(_cut, backend="eager")


def has_sides_that_differ_under_another_compile(x: torch.Tensor = X) -> torch.Tensor:
    return _compiled(x * 2) + 1


def guards_in_a_context(x: torch.Tensor = X) -> torch.Tensor:
    with torch.no_grad():
        if torch.isnan(x).any():
            raise ValueError("not a number")
    return x * 2


def has_sides_that_differ_in_a_context(x: torch.Tensor = X) -> torch.Tensor:
    with contextlib.nullcontext():
        if x.sum() > 0:
            x = x[:1]
    return x * 2


def has_sides_that_differ_in_a_loop(x: torch.Tensor = X) -> torch.Tensor:
    for _ in range(2):
        if x.sum() > 0:
            x = x[:1]
    return x * 2


def reads_a_float(x: torch.Tensor = X) -> torch.Tensor:
    return x * x.sum().item()


def reads_a_number(x: torch.Tensor = X) -> torch.Tensor:
    return x * x.long().sum().item()


def prints_a_text(x: torch.Tensor = X) -> torch.Tensor:
    print("here")
    return x * 2


def prints_an_object(x: torch.Tensor = X) -> torch.Tensor:
    print(object)
    return x * 2


def prints_to_a_stream(x: torch.Tensor = X) -> torch.Tensor:
    print("here", file=_STREAM)
    return x * 2


class _Stream:
    def write(self, text: str) -> None:
        pass


_STREAM = _Stream()
