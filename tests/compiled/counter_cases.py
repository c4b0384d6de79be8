"""Modules that count their calls."""

from __future__ import annotations

import torch
from torch import nn


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + 1


class WarmsUp(Counts):
    def forward(self, x):
        scale = min(1.0, (self.calls + 1) / 100)
        self.calls += 1
        return x * scale


class CountsInAPart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Counts()

    def forward(self, x):
        return self.part(x) * 2


class CountsBehindAGuard(Counts):
    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("not a number")
        self.calls = self.calls + 1
        return x + self.calls


class SpeaksNowAndThen(Counts):
    def forward(self, x):
        if self.calls % 50 == 0:
            print("call", self.calls, "mean", round(x.mean().item(), 3))
        self.calls += 1
        return x + 1


class HasASize(Counts):
    """It does not count: what nothing adds to stays a constant."""

    def forward(self, x):
        return x.new_zeros(self.calls + 1) + x.sum()


class SaysItsNumber(Counts):
    """What makes a text of a symbol breaks."""

    def forward(self, x):
        self.calls += 1
        return x + 1, "%d calls" % self.calls


class CountsInOnePart(nn.Module):
    """The number of the other part is a size, to which nothing adds."""

    def __init__(self) -> None:
        super().__init__()
        self.counting, self.sized = Counts(), Counts()
        self.sized.calls = 3

    def forward(self, x):
        self.counting.calls += 1
        return x.new_zeros(self.sized.calls) + x.sum()


class SpeaksOfItsArgument(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.every = 3

    def forward(self, x, step):
        if step % self.every == 0:
            print("step %d" % step)
        return x * 2
