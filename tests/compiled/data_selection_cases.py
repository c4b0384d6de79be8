"""Branches on how much the data selects, and sides that select: masks, places, experts."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    """Has layers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))


class SkipsAnEmptyExpertByItsCount(Base):
    def forward(self, x):
        idx = self.fc(x).argmax(-1)
        out = torch.zeros_like(x)
        for e in range(3):
            mask = idx == e
            n = int(mask.sum())
            if n == 0:
                continue
            out[mask] = self.layers[e](x[mask])
        return out


class GoesIntoAnExpertByItsCount(Base):
    def __init__(self):
        super().__init__()
        self.load = [0, 0, 0]

    def forward(self, x):
        idx = self.fc(x).argmax(-1)
        out = torch.zeros_like(x)
        for e in range(3):
            mask = idx == e
            n = int(mask.sum())
            self.load[e] += n
            if n > 0:
                out[mask] = self.layers[e](x[mask])
        return out


class CountsTheLoadOfExperts(Base):
    def __init__(self):
        super().__init__()
        self.load = [0, 0, 0]

    def forward(self, x):
        idx = self.fc(x).argmax(-1)
        out = torch.zeros_like(x)
        for e in range(3):
            mask = idx == e
            n = int(mask.sum())
            self.load[e] += n
            if n == 0:
                continue
            out[mask] = self.layers[e](x[mask])
        return out


class TrainsOnWhatAMaskSelects(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        if mask.any():
            y = self.fc(x[mask]).sum()
        else:
            y = x.sum()
        return y


class AveragesWhatAMaskSelects(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        n = int(mask.sum())
        if n > 0:
            y = self.fc(x[mask]).sum() / n
        else:
            y = x.sum()
        return y


class BranchesOnACount(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        n = mask.sum().item()
        if n > 2:
            x = self.fc(x)
        return x * 2


class BranchesOnHowManyPlaces(Base):
    def forward(self, x):
        idx = torch.nonzero(x[:, 0] > 0).squeeze(1)
        if idx.numel() > 0:
            loss = self.fc(x[idx]).pow(2).mean()
        else:
            loss = x.sum() * 0
        return loss


class BranchesOnTheLongest(Base):
    def forward(self, x):
        lens = (x.abs().sum(1) * 2).long().clamp(1, 4)
        m = lens.max().item()
        if m < 3:
            x = F.relu(x)
        return self.fc(x) * m


class ReturnsEarlyForNoRows(Base):
    def forward(self, x):
        keep = (x.abs().max(1)[0] > 0.5).nonzero().flatten()
        if len(keep) == 0:
            return x.new_zeros(3)
        return self.fc(x[keep]).mean(0)


class AddsALossOfSelectedRows(Base):
    def forward(self, x):
        loss = self.fc(x).sum()
        fg = x[:, 0] > 0.2
        num = int(fg.sum())
        if num:
            loss = loss + F.mse_loss(self.layers[0](x)[fg], x[fg])
        return loss / max(num, 1)


class AddsALossOfWhatIsSelectedLate(Base):
    def forward(self, x):
        loss = self.fc(x).sum()
        fg = x[:, 0] > 0.2
        if fg.any():
            loss = loss + F.mse_loss(self.layers[0](x)[fg], x[fg])
        return loss


class DividesByACount(Base):
    def forward(self, x):
        loss = self.fc(x).sum()
        fg = x[:, 0] > 0.2
        num = int(fg.sum())
        if num:
            loss = loss + self.layers[0](x)[fg].pow(2).mean()
        return loss / max(num, 1)


class WeighsAMeanOfNothing(Base):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(()))

    def forward(self, x):
        fg = x[:, 0] > 0.5
        loss = self.fc(x).sum() * self.a
        if fg.any():
            loss = loss + self.a * x[fg].mean()
        return loss


class WeighsASumOverACountOfZero(Base):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(()))

    def forward(self, x):
        fg = x[:, 0] > 0.5
        n = int(fg.sum())
        loss = self.fc(x).sum() * self.a
        if n > 0:
            loss = loss + self.a * (self.fc(x)[fg].sum() / n)
        return loss


class HasAViewOfWhatIsWritten(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        out = torch.zeros_like(x)
        v = out[0]
        if mask.any():
            out[mask] = x[mask] * 2
        return out + v


class WritesToItsInput(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        if mask.any():
            x[mask] = x[mask] * 2
        return x + 1


class AddsToItsInput(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        n = int(mask.sum())
        if n > 2:
            x[mask] += 1
        return x + 1


class DividesByZeroWhereNotTaken(Base):
    def forward(self, x):
        n = int((x[:, 0] > 0.5).sum())
        if n > 0:
            y = self.fc(x).sum() / n
        else:
            y = self.fc(x).sum()
        return y


class LeavesTheLastPlaceOut(Base):
    def forward(self, x):
        idx = (x[:, 0] > 0).nonzero().squeeze(1)
        if idx.numel() > 1:
            y = self.fc(x[idx[:-1]]).sum()
        else:
            y = self.fc(x).sum()
        return y


class LooksUpByRowsAndColumns(Base):
    def forward(self, x):
        rows, cols = torch.where(x > 0.7)
        if len(rows):
            y = x[rows, cols].sum() + self.fc(x)[rows].mean()
        else:
            y = x.sum()
        return y


class WritesUnderTwoMasks(Base):
    def forward(self, x):
        keep = x[:, 0] > 0
        out = torch.zeros(4)
        if keep.any():
            out[keep] = x[keep].sum(-1)
            out[~keep] = -1.0
        return out, keep


class WritesWithoutGradients(Base):
    def forward(self, x):
        keep = x[:, 0] > 0
        w = torch.ones_like(x)
        with torch.no_grad():
            if keep.any():
                w[keep] = x[keep].exp()
                w[keep, 0] = 5.0
        return self.fc(x) * w


class DividesWhatIsWritten(Base):
    def forward(self, x):
        keep = x[:, 0] > 0
        out = torch.zeros_like(x)
        if keep.any():
            out[keep] = x[keep].to(torch.float64).float()
            n = keep.sum()
            out = out / n
        return out


class WritesToAResultOfALayer(Base):
    def forward(self, x):
        keep = x[:, 0] > 0.4
        out = self.fc(x)
        if keep.any():
            out[keep] = out[keep] * 3
        return out


class ViewsAnOddNumber(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        n = int(mask.sum())
        if n > 0:
            y = x[mask].view(2, -1).sum()
        else:
            y = x.sum()
        return y


class TakesTheSecondRow(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        n = int(mask.sum())
        if n >= 2:
            y = x[mask][1].sum()
        else:
            y = x.sum()
        return y


class ChangesTheMaskBetween(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        out = torch.zeros_like(x)
        if mask.any():
            y = x[mask]
            mask[0] = False
            mask[0] = True
            out[mask] = y
        return out


class WritesWhatAnotherMaskSelects(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        m2 = mask.roll(1)
        out = torch.zeros_like(x)
        if mask.any():
            out[mask] = x[m2]
        return out


class WritesWhatAFunctionSees(Base):
    def forward(self, x):
        mask = x[:, 0] > 0
        out = torch.zeros_like(x)

        def see():
            return out * 2

        if mask.any():
            out[mask] = x[mask] * 2
        return see()


class LoopsOverACount(Base):
    def forward(self, x):
        n = int((x[:, 0] > 0.5).sum())
        if n > 1:
            for i in range(n):
                x = x + i
        return self.fc(x)


class MakesAsManyAsCounted(Base):
    def forward(self, x):
        n = int((x[:, 0] > 0.5).sum())
        if n > 0:
            x = x + torch.zeros(n, 3).sum()
        return self.fc(x)


class SqueezesPlaces(Base):
    def forward(self, x):
        idx = (x[:, 0] > 0).nonzero()
        if len(idx) == 1:
            y = self.fc(x[idx.squeeze()]).sum()
        else:
            y = self.fc(x).sum()
        return y


class KeepsSomeRows(Base):
    def forward(self, x):
        keep = x[:, 0] > 0
        if keep.sum() > 1:
            x = x[keep]
        return self.fc(x)


class LossesOfClasses(Base):
    def forward(self, x):
        keep = x[:, 0] > 0
        n = keep.sum()
        if n > 1:
            loss = F.cross_entropy(self.fc(x)[keep], x[keep].abs().argmax(-1))
        else:
            loss = self.fc(x).mean()
        return loss


class WritesWhatAutogradHasSaved(Base):
    def forward(self, x):
        keep = x[:, 0] > 0.4
        out = self.fc(x)
        z = out * out
        if keep.any():
            out[keep] = out[keep] * 3
        return out + z


class SplitsByHowManyEachExpertGets(Base):
    def forward(self, x):
        choice = self.fc(x).argmax(-1)
        counts = torch.bincount(choice, minlength=3)
        order = choice.argsort()
        parts = torch.split(x[order], counts.tolist())
        found = [layer(part) for layer, part in zip(self.layers, parts)]
        return torch.cat(found)[order.argsort()]


class CountsMoreThanThereAre(Base):
    def forward(self, x):
        counts = torch.bincount(x.topk(2)[1].flatten(), minlength=5)
        return self.fc(x) * counts[:3]


class AddsRowsOfExperts(Base):
    def forward(self, x):
        weights, chosen = self.fc(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for expert in range(3):
            rows, place = torch.where(chosen == expert)
            if rows.shape[0] == 0:
                continue
            y = self.layers[expert](x[rows]) * weights[rows, place, None]
            out[rows] += y
            self.fc(y)
        return out


class AddsRowsInPlace(Base):
    def forward(self, x):
        chosen = self.fc(x).argmax(-1)
        out = torch.zeros_like(x)
        for expert in range(3):
            rows = (chosen == expert).nonzero().flatten()
            if len(rows) > 0:
                y = self.layers[expert](x[rows])
                out.index_add_(0, rows, y)
                self.fc(y)
        return out


class FillsInPlace(Base):
    def forward(self, x):
        y = self.fc(x)
        if x.mean() > 0:
            y.masked_fill_(x < 0, 0.0)
            y.mul_(2.0)
        return y


class FillsAViewThatIsReadLater(Base):
    def forward(self, x):
        y = x * 1
        row = y[0]
        if x.mean() > 0:
            y.masked_fill_(x < 0, 0.0)
        return self.fc(y) + row


class AddsToWhatTheCallerHas(Base):
    def forward(self, x):
        if x.mean() > 0:
            x.add_(1.0)
        return self.fc(x)


class WritesToAViewOfWhatItHasWritten(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        rows = y[1:]
        if x.max() > 1:
            y.mul_(2)
            rows.mul_(2)
        return y * 2


class WritesToAViewOfALayersResult(Base):
    def forward(self, x):
        y = self.fc(x)
        rows, last = y[1:], y[-1]
        if x.max() > 1:
            rows.mul_(2)
            y[0] = 1.0
        return y + last, rows.exp()


class ReadsWhatIsWrittenOnTheOtherSide(Base):
    def forward(self, x):
        y = self.fc(x)
        same = y
        if x.mean() > 0:
            y.mul_(2)
            z = y + 1
        else:
            z = same * 3
        return y + z


class LeavesOutWhatIsNoNumber(Base):
    """As the metrics of torchmetrics do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor(0.0))
        self.register_buffer("weight", torch.tensor(0.0))
        self.updates = 0

    def checked(self, x, weight=None):
        is_nan = torch.isnan(x)
        if weight is not None:
            has_no_weight = torch.isnan(weight)
        else:
            has_no_weight = torch.zeros_like(is_nan).bool()
            weight = torch.ones_like(x)
        if is_nan.any() or has_no_weight.any():
            x = x[~(is_nan | has_no_weight)]
            weight = weight[~(is_nan | has_no_weight)]
        return x, weight

    def forward(self, x):
        value, weight = self.checked(x[:, 0].contiguous().log())
        if value.numel() == 0:
            return self.total * 1
        self.total += (value * weight).sum()
        self.weight += weight.sum()
        self.updates += 1
        return self.total / self.weight


class KeepsTheRowsThatAreGood(Base):
    def forward(self, x):
        y = self.fc(x)
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = y[keep]
        return y.sum()


class KeepsWhatIsFinite(Base):
    def forward(self, x):
        y = x[:, 0].contiguous().log()
        y = y if torch.isfinite(y).all() else y[torch.isfinite(y)]
        return y.sum()


class GivesTheRowsThatAreGood(Base):
    def forward(self, x):
        y = self.fc(x)
        bad = (y[:, 0] < -0.5) | (y[:, 1] > 0.5)
        if bad.any():
            y = y[~bad]
        return y


class KeepsTheOtherRows(Base):
    def forward(self, x):
        y = self.fc(x)
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = y[~keep]
        return y.sum()


class KeepsRowsOfWhichItHasAskedForSome(Base):
    def forward(self, x):
        y = self.fc(x)
        bad = y[:, 0] < -0.5
        if bad[:2].any():
            y = y[~bad]
        return y.sum()


class KeepsRowsThatAnotherMaskSelects(Base):
    def forward(self, x):
        y = self.fc(x)
        bad, worse = y[:, 0] < -0.5, y[:, 1] < -0.5
        if bad.any() or worse.any():
            y = y[~(bad & worse)]
        if bad.any() and worse.any():
            y = y * 2
        return y.sum()


class KeepsRowsIfBothAreBad(Base):
    def forward(self, x):
        y = self.fc(x)
        bad, worse = y[:, 0] < -0.5, y[:, 1] < -0.5
        if bad.any() and worse.any():
            y = y[~(bad | worse)]
        return y.sum()


class ChangesTheRowsToKeep(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        keep = y[:, 0] > -0.5
        is_bad = not keep.all()
        keep[0] = False
        if is_bad:
            y = y[keep]
        return y.sum()


class WritesToTheRowsThatItKeeps(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        same = y
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = y[keep]
        y.add_(1)
        return y.sum(), same


class KeepsRowsOfAnotherTensor(Base):
    def forward(self, x):
        y = self.fc(x)
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = x[keep]
        return y.sum()


class KeepsRowsAcrossMemory(Base):
    def forward(self, x):
        y = self.fc(x).t()
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = y[keep]
        return y.sum(), y.stride()


class AsksWhetherItHasKeptAll(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        same = y
        keep = y[:, 0] > -0.5
        if not keep.all():
            y = y[keep]
        return y.sum(), y is same


class SelectsByEqualMasks(Base):
    def forward(self, x):
        y = self.fc(x)
        one, other = y[y[:, 0] > 0], x[y[:, 0] > 0]
        return (one * other).sum(), len(one) == len(other)


class SelectsByMasksOfWhatIsWritten(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        one = y[y[:, 0] > 0]
        y.mul_(-1)
        other = y[y[:, 0] > 0]
        return one.sum(), other.sum()


class WritesToWhatABranchHasSelected(Base):
    def forward(self, x):
        a = self.fc(x).detach()
        b = a * 3
        y = a
        if x.mean() > 0:
            y = b
        if x.max() > 1:
            y.mul_(2)
        return y, a.sum(), b


class WritesToWhatTheStateMayHold(Base):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(4, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.fc(x)
            if y.max() > 1:
                self.kept = y
            if y.mean() > 0:
                y.mul_(2)
        return x + 1


class WritesWhereASideTakesIt(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        same, taken = y, x
        if x.max() > 0.5:
            y.mul_(2)
            taken = same
        return y, taken


class WritesBeforeASideTakesIt(Base):
    def forward(self, x):
        y = self.fc(x).detach()
        same, taken = y, x
        if x.max() > 0.1:
            y.mul_(2)
        if x.mean() > -0.5:
            taken = same
        return y, taken


STAY = (
    KeepsTheOtherRows,
    KeepsRowsOfWhichItHasAskedForSome,
    KeepsRowsThatAnotherMaskSelects,
    KeepsRowsIfBothAreBad,
    ChangesTheRowsToKeep,
    WritesToTheRowsThatItKeeps,
    KeepsRowsOfAnotherTensor,
    KeepsRowsAcrossMemory,
    AsksWhetherItHasKeptAll,
    WritesToWhatABranchHasSelected,
    WritesToWhatTheStateMayHold,
    WritesWhereASideTakesIt,
    WritesBeforeASideTakesIt,
    ViewsAnOddNumber,
    TakesTheSecondRow,
    ChangesTheMaskBetween,
    WritesWhatAnotherMaskSelects,
    WritesWhatAFunctionSees,
    LoopsOverACount,
    MakesAsManyAsCounted,
    SqueezesPlaces,
    KeepsSomeRows,
    LossesOfClasses,
    WritesWhatAutogradHasSaved,
)
