"""torchsde: solvers of stochastic differential equations."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torchsde

from . import Case


class _Diffusion(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sin(y) * t

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 0.3 * torch.sigmoid(y)


def _solved(method: str) -> Case:
    def build() -> Callable[..., torch.Tensor]:
        diffusion = _Diffusion()
        return lambda y: torchsde.sdeint(diffusion, y, torch.linspace(0, 1, 3), dt=0.25, method=method)

    return build, lambda: (torch.rand(2, 3),)


CASES: dict[str, Case] = {method: _solved(method) for method in ("euler", "milstein", "srk")}
