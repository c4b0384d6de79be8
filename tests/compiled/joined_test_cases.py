"""Modules in which the value of a test is wanted: ``return not (x > 2).any()``, ``ok = a.all() and b.max() < 1``."""

from __future__ import annotations

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.low, self.high = nn.Linear(4, 4), -1.0, 1.0
        self.seen, self.notes = 0, []

    def is_inside(self, x):
        return (x >= self.low).all() and (x <= self.high).all()

    def is_outside(self, x):
        return (x < self.low).any() or (x > self.high).any()

    def is_small(self, x):
        return x.abs().max().item() < 1.5 and x.mean().item() < 0.1

    def is_calm(self, x):
        return not (x > self.high).any()

    def counts(self, x):
        self.seen += 1
        return (x > self.high).any()

    def notes_it(self, x):
        self.notes.append(len(self.notes))
        return (x > self.high).any()


class ReturnsAnd(Base):
    """torchrl, `TensorSpec.is_in`."""

    def forward(self, x, index):
        y = self.layer(x)
        return y if self.is_inside(y) else y.clamp(self.low, self.high)


class ReturnsOr(Base):
    def forward(self, x, index):
        y = self.layer(x)
        if self.is_outside(y):
            y = y * 0.5
        return y


class ReturnsNumbers(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y * 2 if self.is_small(y) else y


class ReturnsNot(Base):
    def forward(self, x, index):
        y = self.layer(x)
        if self.is_calm(y):
            y = y * 2
        return y, self.is_calm(x)


class Assigns(Base):
    def forward(self, x, index):
        y = self.layer(x)
        is_inside = (y >= self.low).all() and (y <= self.high).all()
        return y, is_inside, type(is_inside) is torch.Tensor


class AssignsNot(Base):
    def forward(self, x, index):
        y = self.layer(x)
        calm = not (y > self.high).any()
        return y, calm, type(calm) is bool


class AssignsBool(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y, bool((y >= self.low).all() and (y <= self.high).all())


class IsOnlyAsked(Base):
    """Python gives a bool, or a tensor, as the data has it; nobody looks at more than its truth."""

    def forward(self, x, index):
        y = self.layer(x)
        bad = not torch.isfinite(y).all() or y.max() > self.high
        if bad and self.training:
            y = y - 1
        elif not bad:
            y = y + 1
        return y


class IsClose(Base):
    def forward(self, x, index):
        y = self.layer(x)
        same = torch.allclose(y.relu(), y)
        return y * 2, same


class AnyOfSome(Base):
    def forward(self, x, index):
        y = self.layer(x)
        if any((each > 1.2).any() for each in (x, y)):
            y = y * 2
        return y


class AnyOfParameters(Base):
    def forward(self, x, index):
        y = self.layer(x)
        if not all(torch.isfinite(each).all() for name, each in self.named_parameters() if "weight" in name):
            y = y * 2
        return y


class AllOfAList(Base):
    def forward(self, x, index):
        y = self.layer(x)
        fine = all([torch.isfinite(y).all(), y.max() < 1.2])
        return y * 2, fine


class PythonFirst(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y * 2, len(y) > 2 and (y > 1).any(), len(y) > 2 and not (y > 1).any(), self.training or (y > 1).any()


class OneOfThree(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y, (y > 1).any() or (x > 2).any() or (x < -2).any(), (y > 0).any() and (x > 0).any() and (x < 1).all()


# --- the second operand may only be evaluated where Python gets to it ---------------------------------------------------


class Counts(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y, self.counts(x) and self.counts(y)


class Notes(Base):
    def forward(self, x, index):
        y = self.layer(x)
        if any(self.notes_it(each) for each in (x, y, x * 2)):
            y = y * 2
        return y


class Draws(Base):
    def forward(self, x, index):
        y = self.layer(x)
        lucky = (x > 1).any() and (torch.rand(3) > 0.5).any()
        return y + torch.rand(1), lucky


class LooksUp(Base):
    def forward(self, x, index):
        y = self.layer(x)
        fits = (index < 4).all() and (y[0, index] > 0).all()
        return y, fits


# --- and which of them it is can be told --------------------------------------------------------------------------------


class IsWritten(Base):
    def forward(self, x, index):
        y = self.layer(x)
        one, other = (x > 1.5).any(), (y > 1).any()
        found = one or other
        found.fill_(False)
        return y, found, one, other


class OperandIsWritten(Base):
    def forward(self, x, index):
        y = self.layer(x)
        one, other = (x > 1.5).any(), (y > 1).any()
        found = one and other
        one.fill_(False)
        return y, found, one


class IsOneOfThem(Base):
    def forward(self, x, index):
        y = self.layer(x)
        one, other = (x > 1.5).any(), (y > 1).any()
        found = one and other
        return y, found, found is one, found is other


class AddsToIt(Base):
    def forward(self, x, index):
        y, flag = self.layer(x), (x > 2).any()
        found = any([flag])
        found |= (x > 1).all()
        if found:
            y = y * 2
        return y, flag


class FlagIsWrittenBeforeItIsAsked(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("flag", torch.tensor(True))

    def forward(self, x, index):
        y = self.layer(x)
        found = (x > -9).all() and self.flag
        self.flag.logical_not_()
        return y if found else y * 2


class IsLookedAtInItsFrame(Base):
    def forward(self, x, index):
        y = self.layer(x)
        found = not (x > 1).any()
        if found:
            y = y * 2
        return y, locals()["found"]


class Counted:
    def __init__(self):
        self.asked = 0

    def __bool__(self):
        self.asked += 1
        return True


class AsksOneAfterTheOther(Base):
    def forward(self, x, index):
        y, one, other = self.layer(x), Counted(), Counted()
        if any([(x > 9).any(), one, other]):
            y = y * 2
        return y, one.asked, other.asked


class IsJoinedToANegation(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y, (x > 0).all() and not x.isnan().any(), (x < 9).all() and not x.isnan().any()


class IsNoTruth(Base):
    def forward(self, x, index):
        y = self.layer(x)
        return y, y.relu().sum() and x.sum(), y.sum() or x.sum()


class IsOneOrOther(Base):
    def forward(self, x, index):
        y = self.layer(x)
        found = not (x > 1).any() or (y > 1).any()
        return y, type(found) is bool, found


ONE_GRAPH = (
    *(ReturnsAnd, ReturnsOr, ReturnsNumbers, ReturnsNot, Assigns, AssignsNot, AssignsBool, IsOnlyAsked, IsClose),
    *(AnyOfSome, AnyOfParameters, AllOfAList, PythonFirst, OneOfThree),
)
OTHERS = (
    *(AddsToIt, FlagIsWrittenBeforeItIsAsked, IsLookedAtInItsFrame, AsksOneAfterTheOther, IsJoinedToANegation),
    *(Counts, Notes, Draws, LooksUp, IsWritten, OperandIsWritten, IsOneOfThem, IsNoTruth, IsOneOrOther),
)
