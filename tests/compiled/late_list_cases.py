"""Lists of numbers that the data decides on, what Python makes of such lists and texts, and numbers of the state."""

from __future__ import annotations

import itertools
import logging
import statistics
from collections import defaultdict

import numpy as np
import torch
from torch import nn

logger = logging.getLogger(__name__)
INFINITE = float("inf")


class Base(nn.Module):
    """Has a layer."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def numbers(self, x):
        return [self.fc(x)[:, k].mean().item() for k in range(3)]


# Lists that a side appends to.


class LeavesALoop(Base):
    def forward(self, x):
        losses = []
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            losses.append(x.abs().mean().item())
            if x.abs().max() > 0.8:
                break
        return x, losses


class AddsListsInPlace(Base):
    def forward(self, x):
        fractions, total = [], x.new_zeros(())
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            with torch.no_grad():
                kl = x.abs().max()
                fractions += [(x.abs() > 0.3).float().mean().item()]
            total = total + x.mean()
            if kl > 0.8:
                break
        return total, np.mean(fractions)


class CountsAList(Base):
    def forward(self, x):
        losses = []
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            losses.append(x.abs().mean().item())
            if x.abs().max() > 0.8:
                break
        return x, len(losses), sum(losses) / len(losses), max(losses), losses[-1], losses[0]


class CountsPerExpert(Base):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.load = [0, 0, 0]

    def forward(self, x):
        chosen, out = self.fc(x).argmax(-1), torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            mask = chosen == k
            if not mask.any():
                continue
            out[mask] = expert(x[mask])
            self.load[k] += int(mask.sum())
        return out


class CountsByThePair(CountsPerExpert):
    def forward(self, x):
        weights, chosen = self.fc(x).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == k)
            if token.numel() == 0:
                continue
            out.index_add_(0, token, expert(x[token]) * weights[token, slot, None])
            self.load[k] += token.numel()
        return out


class CountsInTheSameList(Base):
    def __init__(self):
        super().__init__()
        self.load = self.same = [0, 1]

    def forward(self, x):
        y = self.fc(x)
        if y.mean() > 0:
            self.load[1] += 2
            self.same[0] += self.load[1]
        return y, self.same[1]


class AppendsUnderATest(Base):
    def forward(self, x):
        good = []
        for k in range(3):
            value = self.fc(x)[:, k].mean()
            if value > 0:
                good.append(value.item())
        return x * 2, (sum(good) / len(good)) if good else 0.0, len(good)


class AppendsOnBothSides(Base):
    def forward(self, x):
        found = [1.5]
        y = self.fc(x)
        if y.mean() > 0:
            found.append(y.max().item())
            found.append(2.0)
        else:
            found.append(y.min().item())
        found.append(y.std().item())
        return y, found, found[-1], sorted(found)


class TellsOfAList(Base):
    def forward(self, x):
        residuals = []
        y = torch.zeros_like(x)
        for step in range(5):
            new = 0.5 * torch.tanh(self.fc(y)) + x * 0.1
            residual = (new - y).norm().item()
            residuals.append(residual)
            y = new
            if residual < 0.3:
                logger.warning("converged after %d", step + 1)
                break
        else:
            logger.warning("not converged: %.3f", residuals[-1])
        return y, residuals


class KeepsTheList(Base):
    def forward(self, x):
        losses = []
        self.losses = losses
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            losses.append(x.abs().mean().item())
            if x.abs().max() > 0.8:
                break
        return x


class HandsTheListIn(Base):
    @staticmethod
    def run(x, losses):
        for _ in range(3):
            x = torch.tanh(x) * 1.1
            losses.append(x.abs().mean().item())
            if x.abs().max() > 0.8:
                break
        return x

    def forward(self, x):
        losses = []
        return self.run(x, losses), losses


class HasTheListTwice(Base):
    def forward(self, x):
        losses = []
        every = {"losses": losses}
        if x.mean() > 0:
            losses.append(x.mean().item())
        return x * 2, every["losses"], losses


class HasANestedHelper(Base):
    def forward(self, x):
        y, numbers = self.fc(x), []

        def add(numbers, t):
            if t.mean() > 0:
                numbers.append(t.max().item())

        add(numbers, y)
        add(numbers, -y)
        return y, numbers


class TakesAnotherList(Base):
    def forward(self, x):
        y, base, numbers = self.fc(x), [0.5], []
        if y.mean() > 0:
            numbers.append(y.max().item())
        else:
            numbers = base
        base.append(7.0)
        return y, numbers, base


class LeavesWithAnotherList(Base):
    def forward(self, x):
        errors, old = [], [0.0]
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            if x.norm() < 1.2:
                errors = old
                break
            errors.append(x.norm().item())
        old.append(9.0)
        return x, errors, old


class GivesTheListAnotherName(Base):
    def forward(self, x):
        y, alias, numbers = self.fc(x), [], []
        if y.mean() > 0:
            numbers.append(y.max().item())
            alias = numbers
        numbers.append(5.0)
        return y, numbers, alias


class StoresTheListInASide(Base):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        y, numbers = self.fc(x), []
        self.history = []
        if y.mean() > 0:
            numbers.append(y.max().item())
            self.history = numbers
        numbers.append(5.0)
        return y, numbers


class RepeatsTheList(Base):
    def forward(self, x):
        y, numbers = self.fc(x), []
        repeated = itertools.repeat(numbers, 2)
        if y.mean() > 0:
            numbers.append(y.max().item())
        return y, numbers, [*repeated]


class GoesThroughWhatItAppendsTo(Base):
    def forward(self, x):
        y, numbers = self.fc(x), [1.0]
        for number in numbers:
            if y.mean() > 0 and len(numbers) < 3:
                numbers.append(number + 1)
        return y, numbers


class MeansOfTruths(Base):
    def forward(self, x):
        y = self.fc(x)
        mean = statistics.mean([(y > 0.5).any().item(), (y < -0.5).any().item()])
        return y, mean, isinstance(mean, int)


class AsksWhichTextItIs(Base):
    def forward(self, x):
        y = self.fc(x)
        text = f"{y.max().item():.3f}"
        return y, str(text) is text, "".join([text]) is text, text + "" is text


class TellsOfAnError(Base):
    def forward(self, x):
        y = self.fc(x)
        try:
            raise KeyError(f"k{y.max().item():.2f}")
        except KeyError as error:
            return y, str(error), error.args


class AppendsTensors(Base):
    def forward(self, x):
        found = []
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            found.append(x)
            if x.abs().max() > 0.8:
                break
        return x, len(found)


# What Python makes of late numbers.


class AsksNumpy(Base):
    def forward(self, x):
        values = self.numbers(x)
        return x * 2, np.mean(values), np.std(values), np.max(values), statistics.mean(values)


class AsksPython(Base):
    def forward(self, x):
        values = self.numbers(x)
        return x * 2, max(values), min(values), sorted(values), sum(values) / len(values)


class UnpacksAList(Base):
    def forward(self, x):
        mean, spread = torch.stack([self.fc(x).mean(), x.std()]).tolist()
        logger.warning("mean %.3f spread %.3f", mean, spread)
        return x * 2, mean + spread


class LooksIntoAList(Base):
    def forward(self, x):
        values = self.fc(x).mean(0).tolist()
        signs = (self.fc(x).mean(0) > 0).tolist()
        named = {f"m{k}": value for k, value in enumerate(values)}
        return x * 2, values, max(values), values[0], values[-1], len(values), named["m1"], sum(signs), x.tolist()


class WritesBehindAList(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        values = y.mean(0).tolist()
        top = y[0]
        tops = top.tolist()
        top.mul_(2)
        first, *_ = tops
        return y, first, values[1]


class AppendsWhatATensorHolds(Base):
    def __init__(self):
        super().__init__()
        self._kept = defaultdict(list)

    def forward(self, x):
        for k, value in enumerate(self.fc(x).mean(0).tolist()):
            self._kept[f"m{k}"].append(value)
        return x * 2, [len(kept) for kept in self._kept.values()]


class AsksForWholeNumbers(Base):
    def forward(self, x):
        counts = [(x[:, k] > 0).sum().item() for k in range(3)]
        return x * 2, max(counts), sum(counts) / len(counts)


class MakesTexts(Base):
    def forward(self, x):
        values = self.numbers(x)
        logger.warning("values: %s", ", ".join(f"{value:.3f}" for value in values))
        logger.warning("values: " + " ".join([f"{k}={value:+.2e}" for k, value in enumerate(values)]))
        logger.warning("%s %.3f", values, np.mean(values))
        return x * 2, "loss %.2f of %d" % (values[0], 3), str(values[1]), "{:>8.3f}|{!r}".format(values[0], "x")


class ShowsAMeter(Base):
    class Meter:
        def __init__(self):
            self.value = self.average = self.total = self.count = 0

        def update(self, value, n=1):
            self.value = value
            self.total += value * n
            self.count += n
            self.average = self.total / self.count

        def __str__(self):
            return f"loss {self.value:.4f} ({self.average:.4f})"

    def __init__(self):
        super().__init__()
        self._meter = self.Meter()

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self._meter.update(loss.item(), x.size(0))
        logger.warning(str(self._meter))
        return loss


class MakesATextOfAList(Base):
    def forward(self, x):
        y = self.fc(x)
        numbers = [y.max().item(), 1]
        text = f"{numbers}"
        numbers.append(2)
        return y, text, numbers


class MakesATextOfItsList(Base):
    def __init__(self):
        super().__init__()
        self.load = [0, 0]

    def forward(self, x):
        held = {"load": self.load}
        self.load[0] += 1
        return self.fc(x), f"{self.load}", f"{held}", f"{(self.load, 1)}"


class ShowsWhatAFormatMayNotSuit(Base):
    def forward(self, x):
        y = self.fc(x)
        return y, "%d" % (y.max().item() / y.min().abs().item())


class AsksForTheTypeOfAMean(Base):
    def forward(self, x):
        mean = np.mean(self.numbers(x))
        return x * 2, type(mean).__name__, mean


class MeansOfNothing(Base):
    def forward(self, x):
        good = []
        if x.mean() > 0:
            good.append(x.mean().item())
        return x * 2, max(good) if len(good) > 0 else None


class ComparesTexts(Base):
    def forward(self, x):
        text = f"{self.fc(x).mean().item():.0f}"
        return x * 2 if text == "0" else x


# Numbers of the state in the graph.


class StopsEarly(Base):
    def __init__(self):
        super().__init__()
        self.best, self.bad, self.stopped = INFINITE, 0, False

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        if loss.item() < self.best - 1e-4:
            self.best = loss.item()
            self.bad = 0
        else:
            self.bad += 1
        if self.bad >= 3:
            self.stopped = True
        return loss


class ScalesAndGrows(Base):
    def __init__(self):
        super().__init__()
        self.scale, self.growth = 4.0, 0

    def forward(self, x):
        y = self.fc(x) * self.scale
        found = {"inf": (y.abs() > 3).any().float(), "nan": torch.isnan(y).any().float()}
        if not sum(value.item() for value in found.values()):
            self.growth += 1
            if self.growth == 3:
                self.scale *= 2.0
                self.growth = 0
        else:
            self.scale *= 0.5
            self.growth = 0
        return y


class StepsUnlessInfinite(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.ones(3))
        self.register_buffer("scale", torch.tensor(64.0))
        self.growth_tracker = 0
        self.skipped = 0

    def _unscale_grads_(self, grads):
        found_inf = torch.zeros(())
        out = []
        for gradient in grads:
            g = gradient * self.scale.reciprocal()
            found_inf = torch.maximum(found_inf, (~torch.isfinite(g)).any().float())
            out.append(g)
        return out, {torch.device("cpu"): found_inf}

    def _maybe_opt_step(self, grads, optimizer_state):
        retval = None
        if not sum(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            for g in grads:
                self.weight.add_(g, alpha=-0.1)
            retval = self.weight.norm()
        return retval

    def forward(self, x):
        optimizer_state = {}
        grads, optimizer_state["found_inf_per_device"] = self._unscale_grads_([x[0] / (x[0, 0] > 0.3), x[1]])
        retval = self._maybe_opt_step(grads, optimizer_state)
        if retval is None:
            self.skipped += 1
            self.growth_tracker = 0
            self.scale.mul_(0.5)
        else:
            self.growth_tracker += 1
            if self.growth_tracker == 2:
                self.scale.mul_(2.0)
                self.growth_tracker = 0
        return retval


class CountsInFloats(Base):
    def __init__(self):
        super().__init__()
        self.count = 1e-4
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, x):
        mean, var, n = x.mean(0), x.var(0), x.shape[0]
        delta, total = mean - self.mean, self.count + n
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + var * n + delta**2 * self.count * n / total) / total
        self.count = total
        return self.fc((x - self.mean) / torch.sqrt(self.var + 1e-8))


class CorrectsTheBias(Base):
    def __init__(self):
        super().__init__()
        self.average, self.n = 0.0, 0

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self.n += 1
        self.average = 0.98 * self.average + 0.02 * loss.item()
        smooth = self.average / (1 - 0.98**self.n)
        if smooth > 1.0:
            logger.warning("diverging %.3f", smooth)
        return loss, smooth


class GrowsWithoutEnd(Base):
    def __init__(self):
        super().__init__()
        self.big, self.seen = 2**62, defaultdict(int)

    def forward(self, x):
        if x.mean() > 0:
            self.big = self.big * 2
        if self.big > 2**63:
            self.seen["big"] += 1
        return self.fc(x)


# Declined: what they need nobody knows before the graph has run, or somebody else has the list.
STAY = (
    KeepsTheList,
    HandsTheListIn,
    HasTheListTwice,
    HasANestedHelper,
    TakesAnotherList,
    LeavesWithAnotherList,
    GivesTheListAnotherName,
    StoresTheListInASide,
    RepeatsTheList,
    GoesThroughWhatItAppendsTo,
    MeansOfTruths,
    AsksWhichTextItIs,
    TellsOfAnError,
    AppendsTensors,
    AppendsWhatATensorHolds,
    MeansOfNothing,
    MakesATextOfAList,
    MakesATextOfItsList,
    ShowsWhatAFormatMayNotSuit,
    AsksForTheTypeOfAMean,
    ComparesTexts,
    GrowsWithoutEnd,
)
# How often they are compiled: again for another type or another truth of the state.
AGAIN = {StopsEarly: 2, ShowsAMeter: 2, ScalesAndGrows: 2, CountsInFloats: 2, CorrectsTheBias: 2}
