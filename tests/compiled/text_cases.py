"""Texts of containers, of objects and of counters."""

from __future__ import annotations

import collections
from typing import Any

import torch


class Meter:
    """It has a `__repr__`, and no `__str__`."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def __repr__(self) -> str:
        return f"Meter({self.total:.3f}, {self.count})"


class Tracker(dict[str, float]):
    def __str__(self) -> str:
        return ", ".join(f"{name}={value:.3f}" for name, value in sorted(self.items()))


class Texts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step, self.meter = 0, Meter()

    def of_a_counter(self, x: torch.Tensor) -> Any:
        found = {"step": "[%d/%d]" % (self.step, 12), "mean": round(x.mean().item(), 3)}
        if self.step % 3 == 0:
            print(str(found))
        return found["step"]

    def of_containers(self, x: torch.Tensor) -> Any:
        found = [x.mean().item(), (x.max().item(), 2), {"a": x.min().item(), "b": None}, "text"]
        return str(found), repr(tuple(found)), str({1: found})

    def of_an_ordered_dict(self, x: torch.Tensor) -> Any:
        found = collections.OrderedDict()
        found["mean"] = x.mean().item()
        return str(found)

    def of_an_object(self, x: torch.Tensor) -> Any:
        self.meter.total += x.mean().item()
        self.meter.count += 1
        return str(self.meter)

    def of_a_dict_with_a_text_of_its_own(self, x: torch.Tensor) -> Any:
        found = Tracker()
        found["mean"], found["max"] = x.mean().item(), x.max().item()
        return f"all: {found}", f"meter: {self.meter}"

    def of_an_object_that_has_changed(self, x: torch.Tensor) -> Any:
        self.meter.count += 1
        return f"{self.meter}"

    def of_an_object_that_does_not_change(self, x: torch.Tensor) -> Any:
        return str(self.meter), x.mean().item()

    def forward(self, x: torch.Tensor, name: str) -> Any:
        self.step += 1
        return x * 2, getattr(self, name)(x)


ONE_GRAPH = ["of_a_counter", "of_containers"]
NAMES = [name for name in vars(Texts) if name.startswith("of_")]
