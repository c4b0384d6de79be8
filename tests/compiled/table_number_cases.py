"""Modules that look numbers up in lists of theirs, at a number that counts calls: schedules, orders of solvers."""

from __future__ import annotations

from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.step, self.last = nn.Linear(4, 4), 0, 0.0
        self.rates, self.orders = [0.1 / (index + 1) for index in range(20)], [1 + index % 2 for index in range(20)]
        self.mixed, self.fixed, self.alias = [1, 2.5, None, 3] * 5, tuple(self.rates), self.rates


class Scales(Base):
    def forward(self, x, n):
        y = self.layer(x) * self.rates[self.step]
        self.step += 1
        return y


class BehindTheStep(Base):
    def forward(self, x, n):
        self.step += 1
        self.last = self.rates[self.step - 1]
        return self.layer(x) * self.rates[min(self.step, 5)] + self.fixed[self.step] + self.fixed[-1]


class OfTheNext(Base):
    def forward(self, x, n):
        y = self.layer(x) * self.rates[self.step] + self.rates[self.step + 1]
        self.step += 1
        return y


class OfParts(Base):
    def forward(self, x, n):
        self.step += 1
        return self.layer(x) * self.rates[self.step % 3] * self.rates[self.step // 3]


class OneInAnother(Base):
    def forward(self, x, n):
        rate = self.rates[self.orders[self.step]]
        self.step += 1
        return self.layer(x) * rate


class NotesIt(Base):
    """Another list is changed."""

    def forward(self, x, n):
        rate = self.rates[self.step]
        self.step += 1
        self.mixed.append(rate)
        return self.layer(x) * rate


class Decides(Base):
    """A solver of two orders: diffusers."""

    def forward(self, x, n):
        order = self.orders[self.step]
        self.step += 1
        if order == 1:
            return self.layer(x)
        return self.layer(self.layer(x))


class Repeats(Base):
    def forward(self, x, n):
        for _ in range(self.orders[self.step]):
            x = self.layer(x)
        self.step += 1
        return x


class WarmsUp(Base):
    def forward(self, x, n):
        rate = self.rates[self.step] if self.step < 5 else self.rates[-1]
        self.step += 1
        return self.layer(x) * rate


class IsChangedOutside(Base):
    """The list is another one in each call."""

    def forward(self, x, n):
        y = self.layer(x) * self.rates[self.step]
        self.step += 1
        return y

    def between(self, call):
        self.rates = [rate * 2 for rate in self.rates] if call % 2 else (*self.rates,)


class OfAnArgument(Base):
    def forward(self, x, n):
        return self.layer(x) * self.rates[n]


class OfOtherTypes(Base):
    def forward(self, x, n):
        value = self.mixed[self.step]
        self.step += 1
        return self.layer(x) if value is None else self.layer(x) * value


class WritesBefore(Base):
    def forward(self, x, n):
        self.rates[0] = 5.0
        y = self.layer(x) * self.rates[self.step]
        self.step = (self.step + 1) % 3
        return y


class WritesToTheSame(Base):
    def forward(self, x, n):
        self.alias[1] = self.alias[1] + 1.0
        y = self.layer(x) * self.rates[self.step]
        self.step = (self.step + 1) % 3
        return y


class BecomesTheSame(Base):
    """The list that is changed is that in which the number was looked up, from the third call on."""

    def __init__(self):
        super().__init__()
        self.other = [0.0] * 20

    def forward(self, x, n):
        rate = self.rates[self.step]
        self.other.append(rate)
        self.other[self.step] = 3.0
        self.step += 1
        return self.layer(x) * rate * self.rates[self.step - 1]

    def between(self, call):
        if call == 2:
            self.other = self.rates


class WritesBehind(Base):
    """What was looked up stays what it was."""

    def forward(self, x, n):
        rate = self.rates[self.step]
        self.rates[self.step] = 7.0
        self.last = rate
        self.step += 1
        return self.layer(x) * rate


class Appends(Base):
    def forward(self, x, n):
        y = self.layer(x)
        self.rates.append(y.mean().item())
        self.step += 1
        return y * self.rates[self.step]


class GoesBeyond(Base):
    def forward(self, x, n):
        self.step += 5
        return self.layer(x) * self.orders[self.step]


ONE_GRAPH = (Scales, BehindTheStep, OfTheNext, OfParts, OneInAnother, NotesIt)
TWO_GRAPHS = (Decides, Repeats, WarmsUp)
OTHERS = (
    *(IsChangedOutside, OfAnArgument, OfOtherTypes, WritesBefore, WritesToTheSame, WritesBehind, Appends, GoesBeyond),
    BecomesTheSame,
)
