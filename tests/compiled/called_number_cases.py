"""Numbers that `float` and `int` read of tensors of whole numbers, in tests, in sides and elsewhere."""

from __future__ import annotations

import torch
from torch import nn


class Kept(nn.Module):
    """What the cases keep."""

    def __init__(self):
        super().__init__()
        self.kept, self.calls, self.total = [], 0, 0.0


class Other(Kept):
    """A case that is no single graph."""


class FloatOfAMean(Kept):
    def forward(self, x, t):
        if float(x.mean()) > 0.1:
            x = x + 1
        return x


class FloatOfAnItem(Kept):
    def forward(self, x, t):
        if float(t[0]) > 1:
            x = x + 1
        return x


class IntOfAnItem(Kept):
    def forward(self, x, t):
        if int(t[0]) > 1:
            x = x + 1
        return x


class FloatIs(Kept):
    def forward(self, x, t):
        if float(t[0]) == 1.0:
            self.calls += 1
        return x * 2


class Counts(Kept):
    def forward(self, x, t):
        if float(t[0]) > 1:
            self.calls += 1
        return x * 2


class InTheMiddle(Kept):
    def forward(self, x, t):
        if abs(float(t[0]) - 1) > 0.5:
            x = x + 1
        return x


class IntInTheMiddle(Kept):
    def forward(self, x, t):
        if abs(int(t[0]) - 1) > 0:
            x = x + 1
        return x


class ASumAndACounter(Kept):
    def forward(self, x, t):
        if float(t[0]) + float(t[1]) > 2 and self.calls < 100:
            x = x + 1
        return x


class Rounded(Kept):
    def forward(self, x, t):
        if round(float(x.mean()), 2) > 0.1:
            x = x + 1
        return x


class IntOfASum(Kept):
    def forward(self, x, t):
        if int((x > 0).sum()) == 6:
            x = x + 1
        return x


class OneOf(Kept):
    def forward(self, x, t):
        if int(t.sum()) in (1, 2):
            x = x + 1
        return x


class NotInt(Kept):
    def forward(self, x, t):
        if not int(t[0]):
            x = x + 1
        return x


class TruthOfAFloat(Kept):
    def forward(self, x, t):
        if float(t.float().mean()):
            x = x + 1
        return x


class AppendedPlace(Kept):
    def forward(self, x, t):
        self.kept.append(float(x.sum(1).argmax()))
        return x * 2


class AppendedPlaceInASide(Kept):
    def forward(self, x, t):
        if (x > 1).any():
            self.kept.append(float((x > 1).float().argmax()))
        return x * 2


class Product(Kept):
    def forward(self, x, t):
        return x * float((x > 0).sum())


class Quotient(Kept):
    def forward(self, x, t):
        return x.sum() / max(float((x > 0).sum()), 1.0)


class TruthAsAFloat(Kept):
    def forward(self, x, t):
        self.total += float((x > 1).any())
        return x * 2


class Stored(Kept):
    def forward(self, x, t):
        self.total = float(t.sum())
        return x * 2


class GivenBack(Kept):
    def forward(self, x, t):
        return x * 2, float(t[0])


class Great(Kept):
    def forward(self, x, t):
        return x * 2, float(t[0] * 9007199254740993)


class SmallDtype(Kept):
    def forward(self, x, t):
        return x * float(t[0].to(torch.uint8))


class Shown(Kept):
    def forward(self, x, t):
        return x * 2, f"{float(t[0])}"


class Place(Other):
    def forward(self, x, t):
        return x[int(float(t[0]))]


class Rounds(Other):
    def forward(self, x, t):
        for _ in range(int(float(t[0]))):
            x = x + 1
        return x


class Size(Other):
    def forward(self, x, t):
        return torch.zeros(int(float(t[0]) + 1))


class Power(Other):
    def forward(self, x, t):
        return x * 0.9 ** float(t[0])


class CutOff(Other):
    def forward(self, x, t):
        if int(x.sum()) > 0:
            x = x + 1
        return x


class Odd(Other):
    def forward(self, x, t):
        if int(t[0]) % 2:
            x = x + 1
        return x


class WhileLoop(Other):
    def forward(self, x, t):
        while int(t.sum()) > 2:
            t = t - 1
        return x + t.sum()


OTHERS = {kind.__name__: kind for kind in Other.__subclasses__()}
ONE_GRAPH = {kind.__name__: kind for kind in Kept.__subclasses__() if kind is not Other}
