"""Modules that change from call to call what they read behind a statement that breaks without the hook."""

import logging

import torch

log = logging.getLogger("recompilation_cases")


class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.calls, self.note, self.history, self.seen, self.temperature = 0, "", [], {}, 1.0
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("scale", torch.tensor(1.0))


class CountsAtTheEnd(Base):
    def forward(self, x):
        loss = self.first(x).pow(2).mean()
        if torch.isnan(loss):
            raise ValueError("NaN")
        self.calls += 1
        return loss


class CountsBehindAGuard(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.calls = self.calls + 1
        return self.last(h)


class CountsBehindALog(Base):
    def forward(self, x):
        h = self.first(x)
        log.warning("a call")
        self.calls += 1
        return self.last(h)


class CountsBehindABranch(Base):
    def forward(self, x):
        h = self.first(x)
        if h.sum() > 0:
            h = h * 2
        self.calls += 1
        return self.last(h)


class CountsBetweenGuards(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.calls += 1
        h = self.last(h)
        if torch.isinf(h).any():
            raise ValueError("inf")
        return h.relu()


class CountsInATry(Base):
    def forward(self, x):
        h = self.first(x)
        try:
            log.warning("a call")
        finally:
            self.calls += 1
        return self.last(h)


class Grows(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.history.append(1)
        return self.last(h)


class Writes(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.note = self.note + "x"
        return self.last(h)


class Collects(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.seen[len(self.seen)] = 1
        return self.last(h)


class HalvesEachFourth(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.calls += 1
        if self.calls % 4 == 0:
            h = h * 0.5
        return self.last(h)


class Inner(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.calls += 1
        return h.relu()


class Holds(Base):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Inner() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


class FixesItsLength(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        return self.last(h) * [1.0][len(range(x.shape[0])) * 0]


class DecidesByItsLength(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        for _ in range(x.shape[0] % 5):
            h = h + 1
        return self.last(h)


class AnnealsAFloat(Base):
    def forward(self, x):
        h = self.first(x)
        if torch.isnan(h).any():
            raise ValueError("NaN")
        self.temperature = self.temperature * 0.9
        return self.last(h) / self.temperature


class CountsRows(Base):
    def forward(self, x):
        h = self.first(x)
        self.calls = max(self.calls + x.size(0), len(x))
        return self.last(h)


class DecidesOnABuffer(Base):
    def forward(self, x):
        h = self.first(x)
        if self.steps == 0:
            h = h * 2
        self.steps += 1
        return self.last(h)


class ReadsAFloatOfABuffer(Base):
    def forward(self, x):
        h = self.first(x)
        self.scale.mul_(0.9)
        return self.last(h) * self.scale.item()


class ReadsThenCounts(Base):
    def forward(self, x):
        h = self.last(self.first(x)) * self.scale.item()
        self.scale.mul_(0.9)
        return h


class ReturnsOrComputes(Base):
    def forward(self, x):
        norm = self.first(x).norm().item()
        return x * (4.0 / norm) if norm > 4.0 else x


class ChangesTwice(Base):
    """A key that is new in the first call, and a text that changes in the fourth."""

    def forward(self, x):
        h = self.first(x)
        log.warning("a call")
        if "first" not in self.seen:
            self.seen["first"] = 1
        if self.note == "later":
            h = h * 2
        self.note = self.seen.get("note", "")
        if self.calls == 3:
            self.seen["note"] = "later"
        self.calls += 1
        return self.last(h)


class GrowsInACall(Base):
    """What is called asks for a length, and breaks in stock: there it is a frame of its own, and the rest another."""

    def forward(self, x):
        h = self._penalised(self.first(x))
        for row, token in enumerate(h[:2].argmax(-1).tolist()):
            self.seen.setdefault(row, []).append(token)
        return self.last(h)

    def _penalised(self, h):
        counts = torch.zeros_like(h)
        for row, tokens in self.seen.items():
            counts[row] += len(tokens)
        seen = counts > 0
        if not seen.any():
            return h
        return torch.where(seen, h * 2, h)
