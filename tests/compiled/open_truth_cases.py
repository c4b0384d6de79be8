"""Tests of what comes in as a tensor, and by its text may be a number of Python: each gives other kinds of results."""

from __future__ import annotations

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.every = nn.Linear(4, 4), 2
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def is_due(self, index):
        return index % self.every == 0


class ReturnsEarly(Base):
    """CleanRL."""

    def forward(self, x, step):
        if step % self.every != 0:
            return None
        return self.layer(x).mean()


class IsWritten(Base):
    """What the frame writes to before is read as it is then."""

    def forward(self, x, step):
        step = step.clone()
        step += 1
        if step % self.every:
            return [self.layer(x)]
        return self.layer(x)


class Counts(Base):
    def forward(self, x, step):
        self.calls += 1
        if self.calls % 4 == 0:
            return {"x": x}
        return self.layer(x)


class Chooses(Base):
    def forward(self, x, step):
        return [x] if step % self.every else (self.layer(x),)


class IsNot(Base):
    def forward(self, x, step):
        if not (step % self.every):
            return [x]
        return self.layer(x)


class OfAFloat(Base):
    def forward(self, x, step):
        if (step.float() / 2) % 1:
            return [x]
        return self.layer(x)


class Asks(Base):
    def forward(self, x, step):
        if self.is_due(step):
            return [self.layer(x)]
        return self.layer(x)


class InAComprehension(Base):
    def forward(self, x, step):
        return [self.layer(x) if index % 2 else x for index in (step, step + 1)]


class TwoQuestions(Base):
    """The fourth combination of answers is the last that is compiled."""

    def forward(self, x, step):
        if step % self.every and step % 3:
            return [x]
        return self.layer(x)


class InASide(Base):
    """A side is traced once, for all that comes in."""

    def forward(self, x, step):
        if x.sum() > 0:
            y = x * 2 if step % 2 else x * 3
        else:
            y = x
        return self.layer(y)


class OfData(Base):
    """What is computed of floats with many numbers is not known by the inputs."""

    def forward(self, x, step):
        y = self.layer(x)
        if y.sum() % 2 > 1:
            return [y]
        return y * 2


class IsTrained(Base):
    def forward(self, x, step):
        weight = step.float().requires_grad_()
        if weight % 2:
            return [x]
        return self.layer(x) * weight


class IsNaN(Base):
    def forward(self, x, step):
        if (step.float() * float("nan")) % 2:
            return [x]
        return self.layer(x)


class StepsOfConstants(Base):
    """lerobot: denoising until the time, a tensor, has come to its end."""

    def forward(self, x, step):
        dt = torch.tensor(-1.0 / 4, device=x.device)
        time = torch.tensor(1.0, device=x.device)
        while time >= -dt / 2:
            x = x + dt * self.layer(torch.cat([x[:, :3], time.expand(x.shape[0])[:, None]], dim=1))
            time += dt
        return x


class StepsOfATable(Base):
    def forward(self, x, step):
        times, at = torch.linspace(1, 0, 4), 0
        while times[at] > 0.1:
            x, at = x + times[at] * self.layer(x), at + 1
        return x


class StepsUntil(Base):
    def forward(self, x, step):
        time = torch.zeros(())
        while True:
            x = x + 0.1 * self.layer(x)
            time = time + 0.25
            if time >= 1:
                break
        return x


class StepsOfAView(Base):
    """What is written to is seen by its view."""

    def forward(self, x, step):
        times = torch.zeros(2)
        first = times[0]
        while first < 2.5:
            times += 1
            x = x * 1.5
        return self.layer(x)


class StepsOfHalves(Base):
    def forward(self, x, step):
        time = torch.tensor(1.0, dtype=torch.bfloat16)
        while time > 0:
            time = time - 0.3
            x = x + self.layer(x)
        return x


class StepsOfAnInput(Base):
    def forward(self, x, step):
        while step < 5:
            step = step + 2
            x = x + self.layer(x)
        return x


class StepsOfADraw(Base):
    def forward(self, x, step):
        torch.manual_seed(0)
        time = torch.rand(())
        while time < 1:
            time = time + 0.5
            x = x + self.layer(x)
        return x


class StepsUntilASide(Base):
    """What a side writes is no constant behind it."""

    def forward(self, x, step):
        done, steps = torch.tensor(False), 0
        while not done and steps < 9:
            x, steps = x * 0.5, steps + 1
            if x.abs().max() < 1:
                done |= True
        return x


OF_CONSTANTS = (StepsOfConstants, StepsOfATable, StepsUntil, StepsOfAView, StepsOfHalves)
ONE_FOR_EACH = (ReturnsEarly, IsWritten, Counts, Chooses, IsNot, OfAFloat, Asks, InAComprehension)
OTHERS = (TwoQuestions, InASide, OfData, IsTrained, IsNaN, StepsOfAnInput, StepsOfADraw, StepsUntilASide)
