"""torchdiffeq: solvers with fixed and adaptive steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torchdiffeq

from . import Case


class _Field(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(y)) * t


def _solved(method: str) -> Case:
    """With the times as a part of the model."""

    def build() -> Callable[..., torch.Tensor]:
        field = _Field()
        return lambda y: torchdiffeq.odeint(field, y, torch.linspace(0, 1, 4), method=method)

    return build, lambda: (torch.rand(2, 3),)


def _handed_times() -> Callable[..., torch.Tensor]:
    field = _Field()
    return lambda y, t: torchdiffeq.odeint(field, y, t, method="euler")


_METHODS = ("euler", "midpoint", "rk4", "heun3", "explicit_adams", "implicit_adams", "dopri5", "bosh3", "adaptive_heun")
CASES: dict[str, Case] = {method: _solved(method) for method in _METHODS} | {
    "euler, times handed in": (_handed_times, lambda: (torch.rand(2, 3), torch.linspace(0, 1, 4))),
}
