"""Branches whose sides cannot both be evaluated.  Imported twice: as they are, and mended.

Each takes `x` (64, 4), of which the layer `first` makes what no guard could tell ahead of the call.
"""

import logging
import random

import numpy as np
import torch
from torch import nn

log = logging.getLogger("cond_cases")
SCALE = 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.a = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.b = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.threshold = 0
        self.calls = 0
        self.table = nn.Parameter(torch.arange(8.0))

    def hidden(self, x):
        return self.first(x) + x * 100


class CallsModules(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > self.threshold:
            y = self.a(x)
            z = y + SCALE
        else:
            y = self.b(x)
            z = y * 2
        return y * z


class WithoutElse(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.a(x)
        return x * 2


class Chain(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.mean() > 1000:
            y = self.a(x)
        elif x.sum() > 0:
            y = self.b(x)
        else:
            y = self.b(x) - self.a(x)
        return y * 2


class EarlyReturn(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            return self.a(x), x
        x = self.b(x)
        y = self.a(x)
        return x * 2, y


class LooksUp(Model):
    """On the other side, the place does not exist: there it is not looked at."""

    def forward(self, x):
        x = self.hidden(x)
        place = (x.mean() * 3).long().abs()
        if place < 8:
            y = self.b(x) + torch.index_select(self.table, 0, place.reshape(1))
        else:
            y = self.a(x)
        return y


class Loops(Model):
    def forward(self, x, times=3):
        x = self.hidden(x)
        if x.sum() > 0:
            for step in range(times):
                if step == 1:
                    continue
                x = self.a(x) + step
        else:
            x = x - helper(x)
        return x


def helper(x):
    return x.softmax(-1)


class Draws(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = x + torch.rand_like(x)
        else:
            y = self.a(x)
        return y + torch.rand_like(x)


class UnderAutocast(Model):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.hidden(x)
            if x.sum() > 0:
                y = self.a(x)
            else:
                y = self.a(self.a(x))
            return y * 2


class SelectsInside(Model):
    """[Where] merges the inner branch, inside the graph of the side."""

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = self.a(x)
            if y.sum() > 0:
                y = y * 2
        else:
            y = self.b(x)
        return y


class Guards(Model):
    """The guard stands before the branch, and wins over what the branch does."""

    def forward(self, x):
        x = self.hidden(x)
        if x.isnan().any():
            raise ValueError(f"not a number: {x.sum()}")
        if x.sum() > 0:
            x = self.a(x)
        log.warning("after %s", x.shape)
        return x


class Fails(Model):
    """Taken or not, a side fails as it does in eager."""

    def forward(self, x):
        x = self.hidden(x)
        log.warning("before")
        if x.sum() > 0:
            y = torch.index_select(self.a(x), 0, (x.sum() > 0).long().reshape(1) * 64)
        else:
            y = self.b(x)[:1]
        return y


# --- left alone ------------------------------------------------------------------------------------------------------


class OtherShapes(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.a(x)[:1]
        return x * 2


class OtherStrides(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = self.b(x).t().clone(memory_format=torch.contiguous_format).t()
        return y.as_strided((2,), (1,))


class OtherTypes(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.a(x).double()
        return x * 2


class GivesNumbers(Model):
    def forward(self, x):
        x = self.hidden(x)
        scale = 1
        if x.sum() > 0:
            x = self.a(x)
            scale = 2
        return x * scale


class GivesParameters(Model):
    def forward(self, x):
        x = self.hidden(x)
        weight = self.first.weight
        if x.sum() > 0:
            weight = self.a[0].weight[:4]
        else:
            weight = dict(self.first.named_parameters())["weight"]
        return x @ weight + isinstance(weight, nn.Parameter)


class Expanded(Model):
    def forward(self, x):
        x = self.hidden(x)
        wide = x[:, :1].expand(64, 4)
        if x.sum() > 0:
            wide = self.b(x[:, :1].expand(64, 4))[:, :1].expand(64, 4)
        return wide.as_strided((2,), (1,))


class WritesToWhatIsOlder(Model):
    def forward(self, x):
        x = self.hidden(x)
        y = x + 1
        if x.sum() > 0:
            z = self.a(y.add_(1))
        else:
            z = self.b(y)
        return z * y


class WritesBehindTheBranch(Model):
    """Whether `kept` is `y` is for the data to say."""

    def forward(self, x):
        y = self.hidden(x)
        kept = y
        if x.sum() + y.sum() > 0:
            y = self.a(y)
        change(y)
        return y * 2 + kept


def change(x):
    x.add_(1)


class GivesOneTensorTwice(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = self.a(x)
            z = y[:, :2]
        else:
            y = self.b(x)
            z = y[:, 2:]
        change(z)
        return y


class UpdatesStatistics(Model):
    def forward(self, x):
        x = self.hidden(x)
        self.norm.train()
        if x.sum() > 0:
            x = self.norm(x)
        return x * 2


class CountsCalls(Model):
    def counted(self, x):
        self.calls += 1
        return self.a(x)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.counted(x)
        return x * 2


class DrawsOfPython(Model):
    def noise(self):
        return random.uniform(0, 1)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = self.a(x) * self.noise()
        else:
            y = self.b(x) + self.noise()
        return y


class MovesAnIteratorOn(Model):
    def taken(self, items):
        return next(items)[1]

    def forward(self, x):
        x = self.hidden(x)
        items = enumerate([1.0, 2.0, 3.0])
        if x.sum() > 0:
            y = self.a(x) * self.taken(items)
        else:
            y = self.b(x) * self.taken(items)
        return y * self.taken(items)


class WithGradients(Model):
    """The layer alone is without them."""

    def trained(self, x):
        with torch.enable_grad():
            return self.a(x)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            y = self.trained(x)
        else:
            y = self.b(x)
        return y.detach() * (2 + y.requires_grad)


class CaughtByACaller(Model):
    def picked(self, x):
        if x.sum() > 0:
            y = torch.index_select(self.a(x), 0, (x.sum() > 0).long().reshape(1) * 64)
        else:
            y = self.b(x)[:1]
        return y

    def forward(self, x):
        x = self.hidden(x)
        try:
            y = self.picked(x)
        except IndexError:
            y = x[:1] * 5
        return y


class WritesBehindABreak(Model):
    def forward(self, x):
        x = self.hidden(x)
        y = x
        if x.sum() > 0:
            y = self.a(x)
        torch._dynamo.graph_break()
        change(y)
        return y * 2 + x


class LearnsItsShape(Model):
    def forward(self, x):
        x = self.hidden(x)
        lazy = nn.LazyLinear(4)
        if x.sum() > 1e12:
            x = lazy(x)
        else:
            x = self.b(x)
        return x * (1 + isinstance(lazy.weight, nn.parameter.UninitializedParameter))


class Appends(Model):
    def kept(self, x):
        KEPT.append(x)
        return self.a(x)

    def forward(self, x):
        KEPT.clear()
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.kept(x)
        return x * 2 + len(KEPT)


KEPT = []


class Logs(Model):
    def logged(self, x):
        log.warning("logged %s", x.shape)
        return self.a(x)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.logged(x)
        return x * 2


class ChecksInside(Model):
    def checked(self, x):
        if (x > 1e9).any():
            raise ValueError(f"too much: {x.max()}")
        return self.a(x)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.checked(x)
        return x * 2


class DrawsOfNumpy(Model):
    def layer_drop(self, x):
        number = np.random.uniform()
        return self.a(x) if self.training and number < 0.5 else self.b(x)

    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            x = self.layer_drop(x)
        return x * 2


class MissingOnTheOtherSide(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 1e12:
            x = self.missing(x)
        return x * 2


class BreaksInside(Model):
    def forward(self, x):
        x = self.hidden(x)
        if x.sum() > 0:
            torch._dynamo.graph_break()
            x = self.a(x)
        return x * 2


class ReadByAClosure(Model):
    def forward(self, x):
        x = self.hidden(x)
        scaled = lambda y: y * x  # noqa: E731
        if x.sum() > 0:
            x = self.a(x)
            y = scaled(x)
        else:
            y = self.b(x)
        return y


class Caught(Model):
    def forward(self, x):
        x = self.hidden(x)
        try:
            if x.sum() > 0:
                y = torch.index_select(self.a(x), 0, (x.sum() > 0).long().reshape(1) * 64)
            else:
                y = self.b(x)[:1]
        except IndexError:
            y = x[:1] * 5
        return y


class OfOneSide(Model):
    def forward(self, x):
        x = self.hidden(x)
        positive = x.sum() > 0
        if positive:
            y = self.a(x)
        else:
            x = self.b(x)
        return y if x.mean() > 1 else x


class LeavesALoop(Model):
    def forward(self, x):
        x = self.hidden(x)
        for _ in range(3):
            if x.mean() > 10:
                y = self.a(x)
                break
            y = self.b(x)
            x = x + 1
        return y
