"""What functions answer that are asked about tensors, and values of several types, of which the data decides for one."""

from __future__ import annotations

import logging
import math

import torch
from torch import nn

logger = logging.getLogger(__name__)
INFINITE = float("inf")


class Base(nn.Module):
    """Has layers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))


class Asks(Base):
    """Has a function that answers."""

    @staticmethod
    def is_bad(x):
        total = float(x.float().sum())
        if total > 2 or total == -INFINITE or total != total:
            return True
        return False


class AsksAFunction(Asks):
    def forward(self, x):
        y = self.fc(x)
        if self.is_bad(y):
            y = y * 0.5
        return y


class AsksAFunctionThatTries(Base):
    @staticmethod
    def is_bad(x):
        try:
            total = float(x.float().sum())
        except RuntimeError as error:
            if "value cannot be converted" not in error.args[0]:
                raise
            return True
        else:
            if total > 2 or total == -INFINITE or total != total:
                return True
            return False

    def forward(self, x):
        y = self.fc(x)
        return torch.zeros_like(y) if self.is_bad(y) else y


class AsksAboutSeveralTensors(Asks):
    def is_one_bad(self, tensors):
        for tensor in tensors:
            if tensor is not None and self.is_bad(tensor.data):
                return True
        return False

    def forward(self, x):
        y = self.fc(x)
        if self.is_one_bad([y, None, x]):
            y = y * 0.5
        return y


class KeepsTheAnswer(Base):
    def is_large(self, x):
        return (x > 1).any()

    def forward(self, x):
        y = self.fc(x)
        self.is_clipped = self.is_large(y)
        if self.is_clipped:
            y = y / 2
        return y


class AnswersWithoutGradients(Base):
    def is_bad(self, x):
        with torch.no_grad():
            if torch.isnan(x).any() or x.abs().max() > 1:
                return True
            return False

    def forward(self, x):
        y = self.fc(x)
        if self.is_bad(y):
            return y * 0
        return y


class ReturnsBehindATry(Base):
    def forward(self, x):
        y = self.fc(x)
        try:
            mean = y.mean()
        except ValueError:
            return x
        else:
            if mean > 0.1:
                return y * 2
            return y


class ReturnsInALoopThatGoesOn(Base):
    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
            if y.norm() > 2:
                return y
            if self.training:
                continue
            return x
        return x * 2


class AnswersWithANumber(Base):
    def kind(self, x):
        if x.abs().mean() < 0.5:
            return 0
        return 2

    def forward(self, x):
        kind = self.kind(x)
        if kind == 0:
            return self.fc(x)
        return self.layers[1](x)


class LooksInAList(Base):
    def forward(self, x):
        y = self.fc(x)
        total = y.sum().item()
        if total in [INFINITE, -INFINITE] or total != total:
            y = torch.zeros_like(y)
        if y.argmax() in (1, 2, 5):
            y = y + 1
        return y


class AsksMath(Base):
    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        if not math.isfinite(loss.item()) or math.isnan(x.sum()):
            logger.warning("loss %f", loss.item())
            loss = loss * 0
        number = float(loss)
        return loss, math.isnan(number), math.isfinite(number), math.fabs(number - 1)


class AsksMathInASide(Base):
    def forward(self, x):
        y = self.fc(x)
        if y.mean() > 0:
            if math.isfinite(y.max().item() / 1e-30):
                y = y + 1
        return y


class AddsToAWholeNumber(Base):
    def forward(self, x):
        y, total, count = self.fc(x), 0, 0
        for layer in self.layers:
            y = layer(y)
            if y.mean() > 0:
                total += y.mean().item()
                count += 1
        return y, total, count, total / max(count, 1)


class TakesTheGreater(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        for layer in self.layers:
            y = layer(y)
            worst = max(worst, y.max().item())
        if worst > 0.7:
            y = y / 2
        return y, worst


class CalculatesWithEither(Base):
    def forward(self, x):
        y, factor = self.fc(x), 0
        if y.max() > 0.5:
            factor = y.max().item()
        return y * factor, factor


class TakesAGreatWholeNumber(Base):
    def __init__(self):
        super().__init__()
        self.number = 2**70

    def forward(self, x):
        y, number = self.fc(x), self.number
        if y.max() > 0.5:
            number = y.max().item()
        return y, number * 2


class ShowsEither(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        if y.max() > 0.5:
            worst = y.max().item()
        logger.info("worst %.3f", worst)
        return y


class ShowsEitherInAWayThatFails(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        if y.max() > 0.5:
            worst = y.max().item()
        logger.info(f"worst {worst:.3}")
        return y


class AsksForItsType(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        if y.max() > 0.5:
            worst = y.max().item()
        return y, isinstance(worst, int), type(worst) is float


class AsksWhetherItIsANumber(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        if y.max() > 0.5:
            worst = y.max().item()
        return y, isinstance(worst, (int, float)), isinstance(worst, str)


class MakesAWholeNumberOfIt(Base):
    def forward(self, x):
        y, worst = self.fc(x), 0
        if y.max() > 0.5:
            worst = y.max().item() * 10
        return y, int(worst), round(worst, 2), worst == 0


class TakesATruthOrANumber(Base):
    def forward(self, x):
        y, found = self.fc(x), False
        if y.max() > 0.5:
            found = y.max().item()
        return y, found


class AddsToTheState(Base):
    def __init__(self):
        super().__init__()
        self.running, self.best = 0, 0

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        if torch.isfinite(loss):
            self.running += loss.item()
        self.best = max(self.best, loss.item())
        return loss


class KeepsTheBest(Base):
    def __init__(self):
        super().__init__()
        self.best, self.least = None, INFINITE

    def forward(self, x):
        y = self.fc(x)
        loss = y.pow(2).mean()
        if loss.item() < self.least:
            self.least = loss.item()
            self.best = y.detach().clone()
        return loss


class RemembersTheLastBadLoss(Base):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        if loss > 0.5:
            self.last = loss.item()
        return loss


class Finds(Base):
    """Has a function that finds nothing now and then."""

    def find(self, x):
        if x.max() > 1:
            return None
        return x * 2


class FindsNothing(Finds):
    def forward(self, x):
        return self.find(self.fc(x).detach())


class AsksWhetherItFoundAnything(Finds):
    def forward(self, x):
        found = self.find(self.fc(x).detach())
        return x, found is None, found is not None


class UsesWhatItFinds(Finds):
    def forward(self, x):
        found = self.find(self.fc(x).detach())
        return x if found is None else found + 1


class FindsWhatIsTrained(Base):
    def forward(self, x):
        y, found = self.fc(x), None
        if y.max() > 1:
            found = y.sum()
        return y.mean(), found


class WritesToWhatItFinds(Base):
    def forward(self, x):
        y, found = self.fc(x).detach(), None
        if y.max() > 1:
            found = y
        y.add_(1)
        return y, found


class WritesInASideToWhatItFinds(Base):
    def forward(self, x):
        y, found = self.fc(x).detach(), None
        if y.max() > 1:
            found = y
        if y.mean() > 0:
            y[0] = 7.0
        return y, found


class KeepsWhatItWritesTo(Base):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        with torch.no_grad():
            y = self.fc(x)
            if y.max() > 1:
                self.kept = y
            if y.mean() > 0:
                y.mul_(2)
        return x + 1


class KeepsAParameter(Base):
    def __init__(self):
        super().__init__()
        self.kept = None

    @torch.no_grad()
    def forward(self, x):
        if x.max() > 1:
            self.kept = self.fc.bias
        return x + 1


class AsksWhetherItIsThatTensor(Base):
    def forward(self, x):
        y, found = self.fc(x).detach(), None
        if y.max() > 1:
            found = y
        return y + 1, found is y, y is not found


class FindsTwice(Finds):
    def forward(self, x):
        y = self.fc(x).detach()
        found = self.find(y)
        if y.min() < -1:
            found = None
        return y, found, found is None


class HandsOnWhatItFinds(Finds):
    def __init__(self):
        super().__init__()
        self.found = {}

    def forward(self, x):
        found = self.find(self.fc(x).detach())
        self.found = {"last": found, "all": [found, 1]}
        return x + 1, self.found["all"][1]


class ShowsWhatItFinds(Base):
    def forward(self, x):
        y, found = self.fc(x).detach(), None
        if y.max() > 0.5:
            found = y.max()
        if y.max() > 1:
            y.mul_(0.5)
        logger.info("found %s", found)
        return y


class AsksForTheTruthOfEither(Base):
    def forward(self, x):
        y, found = self.fc(x).detach(), None
        if y.max() > 1:
            found = y.max().item()
        return y + 1 if found else y, found or 0, found == 3


class DividesByTheState(Base):
    def __init__(self):
        super().__init__()
        self.scale = 4.0

    def forward(self, x):
        y, before = self.fc(x), self.scale
        is_large = y.max() > 1
        if is_large:
            self.scale = max(self.scale / 2, 1.0)
        else:
            self.scale = self.scale * 1.5
        if is_large:
            return y * 0, before
        return y / before, before


class ScalesTheLoss(AsksAboutSeveralTensors):
    def __init__(self):
        super().__init__()
        self.scale, self.step, self.last, self.has_overflown = 4.0, 0, -1, False

    def update(self, has_overflown):
        if has_overflown:
            self.scale = max(self.scale / 2, 1)
            self.last = self.step
        else:
            if (self.step - self.last) % 3 == 0:
                self.scale *= 2
        self.step += 1

    def forward(self, x):
        loss = self.fc(x).pow(2).mean() * self.scale
        self.has_overflown = self.is_one_bad([loss.detach(), x])
        self.update(self.has_overflown)
        if self.has_overflown:
            logger.warning("scale %s", self.scale)
        return loss


# Declined: what they need nobody knows before the graph has run.
STAY = (
    ReturnsInALoopThatGoesOn,
    ShowsEitherInAWayThatFails,
    AsksForItsType,
    MakesAWholeNumberOfIt,
    TakesATruthOrANumber,
    UsesWhatItFinds,
    FindsWhatIsTrained,
    ShowsWhatItFinds,
    AsksForTheTruthOfEither,
    AsksWhetherItIsThatTensor,
    KeepsWhatItWritesTo,
    KeepsAParameter,
    FindsTwice,
)
# How often they are compiled: again for another type of the state, for another side of a period, and for a float that
# has changed.
AGAIN = {AddsToTheState: 2, KeepsTheBest: 2, RemembersTheLastBadLoss: 2, DividesByTheState: 2, ScalesTheLoss: 5}
