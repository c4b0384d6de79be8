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


class TakesARemainder(Counts):
    """PyTorch finds no remainder of a float that is a symbol above 2."""

    def forward(self, x):
        half = self.calls * 0.5
        self.calls += 1
        return x + 1 if half % 3 > 2 else x


class TakesTheLarger(Counts):
    """PyTorch makes a float of the larger of a whole number and a float that is a symbol."""

    def forward(self, x):
        rate = max(self.calls / 4, 1)
        self.calls += 1
        return x + rate, rate


class TakesTheLargerFloat(Counts):
    """So it does of the larger of a whole number that is a symbol, and a float."""

    def forward(self, x):
        rate = max(self.calls, 1.5)
        self.calls += 1
        return x + rate, rate


class HasASize(Counts):
    """It does not count: what nothing adds to stays a constant."""

    def forward(self, x):
        return x.new_zeros(self.calls + 1) + x.sum()


class SaysItsNumber(Counts):
    """What makes a text of the number is done behind the graph."""

    def forward(self, x):
        self.calls += 1
        return x + 1, "%d calls" % self.calls


class LooksItsNumberUp(Counts):
    """What hashes a symbol breaks."""

    def forward(self, x):
        self.calls += 1
        return x + 1, {3: "third"}.get(self.calls, "another")


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


def rounds_and_asks_for_a_period(x, n):
    if x.sum() > 1e9:
        x = x * 2
    return x + n % 3, round(0.777, n), min(2.5, n)
