"""Sides that a non-strict export evaluates: what they run is not taken back.  Imported twice: as they are, and mended."""

from __future__ import annotations

import torch
from expectations import Expectation
from torch import Tensor

EXPECT: dict[str, Expectation] = {}


class Owner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.seen, self.table = 0, [], {"a": 1}

    def count(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * 2

    relu = count  # named as an operation of torch

    @property
    def scale(self) -> float:
        self.calls += 1
        return 2.0


class export_counts(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = self.count(x)
        return x


class export_asks_a_property(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x * self.scale
        return x


class export_has_a_method_of_that_name(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = self.relu(x)
        return x


class export_pops(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x + self.table.pop("a")
        return x


class export_appends(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x + len([self.seen.append(i) for i in range(3)])
        return x


class export_computes(Owner):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x.abs().clamp(min=0.5) * 2 + sum([i for i in range(3)]) / (x + 9)
            x = x + f"{self.calls}".count("0")
        return x
