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


def clamped(value, least=None, most=None):
    if least is not None:
        value = max(value, least)
    if most is not None:
        value = min(value, most)
    return value


class AveragesItsWeights(Base):
    """As ema-pytorch does: a number that a buffer holds decides, and how fast the average moves is a power of it."""

    def __init__(self):
        super().__init__()
        self.average = nn.Linear(3, 3).requires_grad_(False)
        self.after, self.speed = 2, 2 / 3
        self.register_buffer("begun", torch.Tensor([False]))
        self.register_buffer("step", torch.tensor([0]))

    def copied(self):
        for average, weight in zip(self.average.parameters(), self.fc.parameters()):
            average.data.copy_(weight.data)

    def decay(self):
        epoch = clamped(self.step.item() - self.after - 1, least=0.0)
        value = 1 - (1 + epoch / 1.0) ** -self.speed
        if epoch <= 0:
            return 0.0
        return clamped(value, least=0.0, most=0.999)

    def update(self):
        step = self.step.item()
        self.step += 1
        if (step % 2) != 0:
            return
        if step <= self.after:
            self.copied()
            return
        if not self.begun.item():
            self.copied()
            self.begun.data.copy_(torch.Tensor([True]))
        self.move()

    @torch.no_grad()
    def move(self):
        decay = self.decay()
        for average, weight in zip(self.average.parameters(), self.fc.parameters()):
            difference = average.data - weight.data
            difference.mul_(1.0 - decay)
            average.sub_(difference)

    def forward(self, x):
        with torch.no_grad():
            self.fc.weight.add_(x.mean(0), alpha=0.1)
        self.update()
        return self.average(x)


class ClipsByHand(Base):
    def forward(self, x):
        y = self.fc(x)
        total = 0.0
        for each in (y, x):
            total += each.detach().norm(2).item() ** 2
        total = total ** (1.0 / 2)
        coefficient = 1.0 / (total + 1e-6)
        if coefficient < 0.4:
            y = y * coefficient
        return y, total


class RaisesNumbers(Base):
    def forward(self, x):
        value = self.fc(x).mean().item()
        return x + 1, value**2, value**3, abs(value) ** 0.5, (abs(value) + 0.1) ** -1.5, value**0


class RaisesNumbersThatAreNone(Base):
    def forward(self, x):
        value = ((x - x) / (x - x).abs().sum()).mean().item()
        infinite = (x[0, 0] / 0).item()
        return x + 1, value**2, max(value, 0.5) + 1, abs(infinite) ** 0.5, infinite**3


class RaisesANumberThatMayBeZero(Base):
    def forward(self, x):
        value = torch.relu(self.fc(x).mean()).item()
        return x + 1, value**-1 if value else 0.0


class RaisesTheGreaterOfWhatMayBeNone(Base):
    """Of NaN and a number the greater is either, as they come."""

    def forward(self, x):
        value = (x.mean() / (x[0, 0] > 5)).item()
        return x + 1, max(1.0, value) ** 2, max(value, 1.0) ** 2


class RoundsAndDecides(Base):
    def forward(self, x):
        y = self.fc(x)
        value = y.mean().item()
        if round(value, 1) > 0.1:
            y = y * 2
        if round(value * 3, 1) ** 2 > 0.3:
            y = y + 1
        return y


class CountsAndDecides(Base):
    def forward(self, x):
        y = self.fc(x)
        count = (y > 0).sum().item()
        rate = max(count - 3, 0.0)
        if (1 + rate) ** -0.5 < 0.6:
            y = y * (1 + rate) ** -0.5
        return y, rate


class KeepsRowsWithoutGradients(Base):
    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            bad = y[:, 0] < -0.7
            if bad.any():
                y = y[~bad]
        return y.sum()


class AsksWhichNumberItIs(Base):
    def forward(self, x):
        y = self.fc(x)
        start = 0
        worst = start
        if y.max() > 0.5:
            worst = y.max().item()
        return y, worst is start, worst is not start


class JoinsMasksByName(Base):
    def forward(self, x):
        y = self.fc(x)
        bad, worse = y[:, 0] < -0.7, y[:, 1] < 0
        keep = ~bad.logical_or(other=worse)
        if bad.any():
            y = y[keep]
        return y.sum()


class JoinsMasksOfNoElements(Base):
    def forward(self, x):
        y = self.fc(x)
        m, none = y[:, 0] > 0, y[:0, :1] > 9
        if (m | none).any():
            y = y[~m]
        return y * 1


class LooksForTheVeryNumber(Base):
    def forward(self, x):
        y = self.fc(x)
        v = x[0, 0].log().item()
        w = v
        if v in (w, 7.0):
            y = y * 2
        return y, v


class AsksWhetherAComplexNumberIsNone(Base):
    def forward(self, x):
        y = self.fc(x)
        z = torch.complex(y.sum(), y.mean())
        try:
            if math.isnan(z.item()):
                y = y * 0
        except TypeError:
            y = y + 1
        return y


class CalculatesWithWhatIsTooGreat(Base):
    def forward(self, x):
        y = self.fc(x)
        n = 10**400
        if y.max() > 0.5:
            n = y.max().item()
        try:
            z = n * 2.0
        except OverflowError:
            z = -1.0
        return y, z


class AsksWhetherItIsATensor(Base):
    def forward(self, x):
        y = self.fc(x)
        found = None
        if y.max() > 1:
            found = y.detach() * 2
        return y, torch.is_tensor(found), found


class DividesANumber(Base):
    def forward(self, x):
        y = self.fc(x).detach() * 1e-39
        s = y.abs().max().item()
        return s / y, torch.isinf(s / y)


class AsksWhichIsTheGreater(Base):
    def forward(self, x):
        y = self.fc(x)
        v = y.max().item()
        worst, least = max(0, v), min(v, 0.5)
        return y, worst, least, worst is v, least is v


class RaisesWhereAContextSwallows(Base):
    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, kind, *rest):
            return kind is ValueError

    def forward(self, x):
        y = self.fc(x)
        with self.Quiet():
            if y.mean() > 0:
                return y * 2
            raise ValueError("low")
        return x


# Declined: what they need nobody knows before the graph has run.
STAY = (
    KeepsRowsWithoutGradients,
    AsksWhichNumberItIs,
    JoinsMasksByName,
    JoinsMasksOfNoElements,
    LooksForTheVeryNumber,
    AsksWhetherAComplexNumberIsNone,
    CalculatesWithWhatIsTooGreat,
    AsksWhetherItIsATensor,
    RaisesWhereAContextSwallows,
    RaisesANumberThatMayBeZero,
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
