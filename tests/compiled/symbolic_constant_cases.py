"""Constants beside floats for which the trace has a symbol alone."""

from __future__ import annotations

import numpy as np
import torch


class Coefficient:
    """Of a penalty; https://github.com/huggingface/trl has one like it."""

    def __init__(self) -> None:
        self.value = 0.2

    def update(self, current: float) -> None:
        self.value *= 1 + np.clip(current / 0.3 - 1, -0.2, 0.2) * 4 / 20


class Penalised(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.coefficient = Coefficient()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, float, float]:
        loss = (x - self.coefficient.value * x).sum()
        mean = x.detach().mean().item()
        self.coefficient.update(mean)
        return loss, mean, float(self.coefficient.value)


class Scaled(torch.nn.Module):
    """scale: a float that changes from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 0.4

    def times_a_constant(self, x: torch.Tensor) -> tuple[torch.Tensor, float]:
        return x + 1, float(self.scale * np.float64(2.0))

    def added_in_place(self, x: torch.Tensor) -> tuple[torch.Tensor, float]:
        scale = self.scale
        scale *= 1 + np.clip(0.5, -0.2, 0.2)
        return x + 1, float(scale)

    def compared(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if torch.tensor(0.5) > self.scale else x - 1

    def written(self, x: torch.Tensor) -> tuple[torch.Tensor, list[float]]:
        held = torch.tensor([0.5, 1.0])
        held.mul_(self.scale)
        return x + held[0], held.tolist()

    def forward(self, x: torch.Tensor, name: str) -> object:
        self.scale += 0.07
        return getattr(self, name)(x)


NAMES = ["times_a_constant", "added_in_place", "compared", "written"]
