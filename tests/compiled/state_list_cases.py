"""Modules that append to lists of theirs, and make something of them: each is one graph, but for those of OTHERS."""

from __future__ import annotations

import json
import math
import statistics
from collections import deque

import numpy as np
import torch
from torch import nn


class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self.history, self.other, self.average, self.best = [], [], 0.0, None
        self.recent, self.one, self.none, self.open = deque(maxlen=3), deque(maxlen=1), deque(maxlen=0), deque()
        self.by_name = {"loss": [], "top": []}


class Averages(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        print(f"{np.mean(self.history):.4f} of {len(self.history)}", np.std(self.history), np.median(self.history))
        return x + 1, sum(self.history) / len(self.history), statistics.mean(self.history)


class Means(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        return x + 1, sum(self.history) / len(self.history), statistics.mean(self.history), max(self.history)


class AsksWhetherItIsFull(Keeper):
    """CleanRL."""

    def forward(self, x):
        self.recent.append(x.mean().item())
        if len(self.recent) == self.recent.maxlen:
            print(f"{sum(self.recent) / len(self.recent):.4f}")
        return x + 1


class Shortens(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        self.average = sum(self.history[-3:]) / 3
        self.history = self.history[-5:]
        return x + 1, self.average, self.history[-1]


class MakesRoom(Keeper):
    """A window that moves, of a list and of a deque."""

    def forward(self, x):
        value = x.mean().item()
        self.open.append(value)
        if len(self.open) > 3:
            self.open.popleft()
        for name in self.by_name:
            self.by_name[name].append(value)
            if len(self.by_name[name]) > 3:
                self.by_name[name].pop(0)
        self.average = float(np.mean(self.open))
        print(
            f"{sum(self.open) / len(self.open):.4f} of {len(self.open)}, {self.by_name['loss'][-1]:.4f}", max(self.open)
        )
        return x + 1


class MakesRoomBefore(Keeper):
    def forward(self, x):
        while len(self.history) >= 3:
            self.history.pop(0)
        self.history.append(x.mean().item())
        return x + 1, self.history[0], len(self.history)


class MakesRoomInAFullWindow(Keeper):
    def forward(self, x):
        self.recent.append(x.mean().item())
        if len(self.recent) == self.recent.maxlen:
            self.recent.popleft()
        return x + 1, len(self.recent)


class TakesInASide(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        if x.max() > 1:
            self.history.pop(0)
        return x + 1, len(self.history)


class AsksWhetherThereIsOne(Keeper):
    """Before the append, and behind it, of a full window too."""

    def forward(self, x):
        value = x.mean().item()
        if not self.history:
            self.average = 0.5
        self.history.append(value)
        self.none.append(value)
        if self.recent and value > 0:
            x = x * 2
        self.recent.append(value)
        if not self.history or self.none:
            x = x * 3
        return x + 1, len(self.history), self.average


class Windows(Keeper):
    def forward(self, x):
        value = x.mean().item()
        self.recent.append(value)
        self.one.append(value)
        self.open.append(value)
        return x + 1, max(self.recent), min(self.one), sum(self.open), list(self.recent), sorted(self.recent)


class IsFull(Keeper):
    def forward(self, x):
        self.none.append(x.mean().item())
        self.recent.append(x.sum().item())
        return x + 1, len(self.none), len(self.recent), len(self.recent) / 3


class Medians(Keeper):
    def forward(self, x):
        self.recent.append(x.mean().item())
        found = torch.tensor(list(self.recent), dtype=torch.float32)
        print("median", torch.tensor(list(self.recent)).median().item(), "{:.3f}".format(found.mean().item()))
        return x + 1, found.max().item()


class TwoByTwo(Keeper):
    def forward(self, x):
        self.history.append(x.min().item())
        first = sum(self.history)
        self.other.append(first)
        self.history.append(x.max().item())
        return x + 1, first, sum(self.history), max(self.other), self.history[-1]


class ShowsBetween(Keeper):
    def forward(self, x):
        print("before", len(self.history), sum(self.history))
        self.history.append(x.min().item())
        print("first", len(self.history), sum(self.history))
        self.history.append(x.max().item())
        print("second", len(self.history), sum(self.history), self.history[-2:])
        return x + 1


class OfNaN(Keeper):
    def forward(self, x):
        self.history.append((x.mean() * math.nan).item())
        self.history.append(x.mean().item())
        return x + 1, max(self.history), min(self.history), sum(self.history)


class Collects(Keeper):
    def forward(self, x):
        self.by_name["loss"].append(x.mean().item())
        self.by_name["top"].append(x.max().item())
        shown = {name: sum(values) / len(values) for name, values in self.by_name.items()}
        return x + 1, shown


class Tests(Keeper):
    """Two graphs: the length is tested."""

    def forward(self, x):
        self.history.append(x.mean().item())
        if len(self.history) > 6:
            print("six", sum(self.history[-6:]) / 6)
        return x + 1


class Clears(Keeper):
    """Two graphs."""

    def forward(self, x):
        self.history.append(x.mean().item())
        if len(self.history) == 4:
            print("mean", sum(self.history) / 4)
            self.history = []
        return x + 1


class IsBetter(Keeper):
    """Two graphs, like those that follow."""

    def forward(self, x):
        value = x.mean().item()
        if len(self.history) > 2 and value > sum(self.history) / len(self.history):
            print("better", value)
        self.history.append(value)
        return x + 1


class Divides(Keeper):
    def forward(self, x):
        if len(self.recent) > 1:
            x = x / (1 + abs(sum(self.recent) / len(self.recent)))
        self.recent.append(x.max().item())
        return x + 1


class SkipsSpikes(Keeper):
    def forward(self, x):
        loss = x.mean()
        if len(self.history) > 3 and loss > 1.1 * max(self.history[-3:]):
            print("spike")
            loss = loss * 0
        self.history.append(loss.item())
        return loss


class Clips(Keeper):
    def forward(self, x):
        norm = x.norm()
        if len(self.history) > 0:
            limit = float(np.mean(self.history))
            if norm > limit:
                x = x * (limit / norm)
        self.history.append(norm.item())
        return x


class Branches(Keeper):
    def forward(self, x):
        if x.sum() > 2:
            self.history.append(x.mean().item())
        return x + 1, len(self.history), sum(self.history)


class WholeNumbers(Keeper):
    def forward(self, x):
        self.history.append((x > 0).sum().item())
        return x + 1, sum(self.history), max(self.history)


class Mixes(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        self.history.append(len(self.history))
        return x + 1, sum(self.history)


class Twins(Keeper):
    def __init__(self):
        super().__init__()
        self.other = self.history

    def forward(self, x):
        self.history.append(x.mean().item())
        return x + 1, sum(self.other), len(self.other)


class GivesIt(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        total = sum(self.history)
        return x + 1, total, self.history


class Repeats(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        for value in self.history[-2:]:
            x = x + value
        return x


class Scales(Keeper):
    def forward(self, x):
        self.history.append(x.abs().mean().item() + 1)
        return x / (sum(self.history) / len(self.history))


class Decides(Keeper):
    def forward(self, x):
        value = x.mean().item()
        if len(self.history) > 0 and value > max(self.history):
            self.best = value
        self.history.append(value)
        return x + 1, self.best


class Extends(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        self.history += [1.0, 2.0]
        self.history.extend([x.max().item()])
        return x + 1, sum(self.history)


class Pops(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        if len(self.history) > 3:
            self.history.pop(0)
        return x + 1, sum(self.history)


class Compares(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        return x + 1, self.history[-1] in self.history, self.history[-3:] == self.history, tuple(self.history[-2:])


class Slices(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        return x + 1, self.history[::2], self.history[:-1], self.history[5:], max(self.history[-4:]), self.history[0]


class Catches(Keeper):
    def forward(self, x):
        try:
            self.history.append(x.mean().item())
            found = max(self.history[3:])
        except ValueError:
            found = None
        return x + 1, found


class Fails(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        if (x > 3).any():
            raise ValueError(f"mean of {sum(self.history)} in {len(self.history)}")
        self.history.append(1.0)
        return x + 1, sum(self.history)


class Full(Keeper):
    """Dynamo looks at the deques here."""

    def forward(self, x):
        for recent in (self.recent, self.one, self.none):
            recent.append(float(len(recent)))
            recent.appendleft(2.0)
            recent.extend([3.0, 4.0])
        kept = [list(recent) for recent in (self.recent, self.one, self.none)]
        return x + 1, kept, len(self.recent) == self.recent.maxlen, len(self.none), max(self.one)


class AppendsBehindABreak(Keeper):
    """Nothing is left for a graph there."""

    def forward(self, x):
        x = x + 1
        torch._dynamo.graph_break()
        self.history.append(float(len(self.other)))
        self.other.append(json.dumps(sorted(self.history)))
        return x


class LooksAtTheOther(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        return x + 1, [value for value in self.other if value > 0], len(self.history)


class MiddleBehindABreak(Keeper):
    def forward(self, x):
        self.history.append(x.max().item())
        middle = sorted(self.history)[len(self.history) // 2]
        torch._dynamo.graph_break()
        last = self.history[len(self.history) - 1]
        return x * middle, [1, 2, 3][len(self.history) % 3], last


class MakesTooMany(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        print("step", len(self.history))
        return x + 1, torch.tensor(self.history[-2:]).item()


class MakesNone(Keeper):
    def forward(self, x):
        self.history.append(x.mean().item())
        print("step", len(self.history))
        return x + 1, torch.tensor(self.history[20:]).min().item()


ONE_GRAPH = (Averages, Means, Shortens, Windows, IsFull, Medians, TwoByTwo, ShowsBetween, OfNaN, Twins, Collects)
TWO_GRAPHS = (
    MakesRoom,
    MakesRoomBefore,
    MakesRoomInAFullWindow,
    Tests,
    AsksWhetherItIsFull,
    Clears,
    AsksWhetherThereIsOne,
    IsBetter,
    Divides,
    SkipsSpikes,
    Clips,
)
OTHERS = (
    *(
        Branches,
        WholeNumbers,
        Mixes,
        GivesIt,
        Repeats,
        Scales,
        Decides,
        Extends,
        Pops,
        TakesInASide,
        Compares,
        Slices,
        Catches,
        Fails,
    ),
    *(AppendsBehindABreak, LooksAtTheOther, MiddleBehindABreak, MakesTooMany),
    Collects,
)
