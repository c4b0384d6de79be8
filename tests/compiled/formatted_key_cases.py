"""Modules whose keys and names are texts with numbers in them that the data decides."""

from __future__ import annotations

from collections import Counter, defaultdict

from torch import nn


class Kept(nn.Module):
    """What the cases keep."""

    def __init__(self):
        super().__init__()
        self.lists, self.counts, self.seen = defaultdict(list), defaultdict(int), set()
        self.table, self.counter, self.calls = {}, Counter(), 0


class InATuple(Kept):
    def forward(self, x, t):
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            self.lists["a", f"q{k}"].append(value)
        return x * 2


class Appends(Kept):
    def forward(self, x, t):
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            self.lists[f"q{k}"].append(value)
        return x * 2


class AppendsByFormat(Kept):
    def forward(self, x, t):
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            self.lists["q{}".format(k)].append(value)
        return x * 2


class AppendsByPercent(Kept):
    def forward(self, x, t):
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            self.lists["q%d" % k].append(value)
        return x * 2


class Counts(Kept):
    def forward(self, x, t):
        for k in t.tolist():
            self.counts[f"q{k}"] += 1
        return x * 2


class AddsToASet(Kept):
    def forward(self, x, t):
        for k in t.tolist():
            self.seen.add(f"q{k}")
        return x * len(self.seen)


class IsInASet(Kept):
    def forward(self, x, t):
        if f"q{int(t[0])}" in {"q1", "q2"}:
            return x + 1
        return x * 2


class PlaceInAList(Kept):
    def forward(self, x, t):
        return x * ["q0", "q1", "q2"].index(f"q{int(t[0])}")


class Floats(Kept):
    def forward(self, x, t):
        for value in x.sum(1).tolist():
            self.lists[f"{value:.0f}"].append(value)
        return x * 2


class FloatsInANewDict(Kept):
    def forward(self, x, t):
        found = {}
        for value in x.sum(1).tolist():
            found[f"{value:.0f}"] = value
        self.table = found
        return x * 2


class TextOfATensor(Kept):
    def forward(self, x, t):
        self.counts[f"{x.sum() > 0}"] += 1
        return x * 2


class DifferentOnes(Kept):
    def forward(self, x, t):
        found = {}
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            found[f"q{k}"] = value
        return x * len(found)


class Comprehension(Kept):
    def forward(self, x, t):
        self.table = {f"q{k}": value for k, value in zip(t.tolist(), x.sum(1).tolist())}
        return x * len(self.table)


class SetComprehension(Kept):
    def forward(self, x, t):
        return x * len({f"q{k}" for k in t.tolist()})


class Setdefault(Kept):
    def forward(self, x, t):
        for k, value in zip(t.tolist(), x.sum(1).tolist()):
            self.table.setdefault(f"q{k}", []).append(value)
        return x * 2


class Get(Kept):
    def forward(self, x, t):
        for k in t.tolist():
            self.table[f"q{k}"] = self.table.get(f"q{k}", 0) + 1
        return x * 2


class Pop(Kept):
    def forward(self, x, t):
        for k in t.tolist():
            self.table.pop(f"q{k}", None)
            self.table[f"q{k}"] = 1
        return x * 2


class Update(Kept):
    def forward(self, x, t):
        self.table.update({f"q{k}": value for k, value in zip(t.tolist(), x.sum(1).tolist())})
        return x * 2


class UpdatedCounter(Kept):
    def forward(self, x, t):
        self.counter.update(f"q{k}" for k in t.tolist())
        return x * 2


class ConvertedFirst(Kept):
    def forward(self, x, t):
        for k in t.tolist():
            self.counts[f"{k!s:5}|"] += 1
        return x * 2


class ConvertedFloat(Kept):
    def forward(self, x, t):
        for value in t.float().tolist():
            self.counts[f"{value!r:>6}|"] += 1
        return x * 2


class Attribute(Kept):
    def forward(self, x, t):
        setattr(self, f"z{int(t[0])}", self.calls)
        self.calls += 1
        return x * 2


CASES = {kind.__name__: kind for kind in Kept.__subclasses__()}
