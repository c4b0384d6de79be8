"""Experts in training, of which data decides who gets a gradient; imported as it is, and mended."""

from __future__ import annotations

import torch
from torch import nn


class Experts(nn.Module):
    """Four linear experts; `x` has rows of 3, `chosen` names the expert of each row, 4 being none."""

    def __init__(self, tied=False):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.SiLU()) for _ in range(4)])
        if tied:
            self.experts[1] = self.experts[0]

    def chosen_experts(self, x, chosen):
        return self.add_chosen_experts(x, chosen, torch.zeros_like(x))

    def add_chosen_experts(self, x, chosen, out):
        mask = nn.functional.one_hot(chosen, num_classes=5).permute(1, 0)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                state = self.experts[number](x[rows])
                out.index_add_(0, rows, state)
        return out

    def forward(self, x, chosen):
        return self.chosen_experts(x, chosen)


class Thawed(Experts):
    """An expert that is frozen until the call."""

    def __init__(self):
        super().__init__()
        self.experts[0][0].requires_grad_(False)

    def forward(self, x, chosen):
        weight = self.experts[0][0].weight
        weight.requires_grad = True
        return self.chosen_experts(x, chosen)


class Residual(Experts):
    """The weights of an expert are used by the steps of two loops."""

    def forward(self, x, chosen):
        x = x + self.chosen_experts(x, chosen)
        return x + self.chosen_experts(x, chosen.roll(1))


class MoreThanSteps(Experts):
    """One expert is used by all rows, too."""

    def forward(self, x, chosen):
        return self.chosen_experts(x, chosen) + self.experts[2](x)


class SeveralResults(Experts):
    def forward(self, x, chosen):
        out = self.chosen_experts(x, chosen)
        return out, out.view(-1), {"twice": out * 2}, out.detach()


class Kept(Experts):
    def forward(self, x, chosen):
        self.kept = self.chosen_experts(x, chosen)
        return self.kept * 2


class WithoutGradients(Experts):
    def forward(self, x, chosen):
        with torch.no_grad():
            first = self.chosen_experts(x, chosen)
        return self.chosen_experts(x, chosen) + first


class WritesToItsInput(Experts):
    """Declined: the frame could not be run again, if a parameter had hooks later."""

    def forward(self, x, chosen):
        out = self.chosen_experts(x, chosen)
        with torch.no_grad():
            x.mul_(2)
        return out


class AddsToItsInput(Experts):
    """Declined: whether the buffer requires a gradient from then on is for the rows to say."""

    def forward(self, x, chosen):
        self.kept = torch.zeros(5, 3)
        torch._dynamo.graph_break()
        return self.add_chosen_experts(x, chosen, self.kept) + 1


class TwoResults(Experts):
    """Declined: the gradient may come by one of them alone."""

    def forward(self, x, chosen):
        x = x + 1
        return self.chosen_experts(x, chosen) + x, self.chosen_experts(x, chosen.flip(0)) + x


class OfWhatWasMadeBefore(Experts):
    """Declined: what made the input would make zeros of no gradient."""

    def __init__(self, tied=False):
        super().__init__(tied)
        self.first = nn.Linear(3, 3)
        self.bias = nn.Parameter(torch.ones(3))

    def forward(self, x, chosen):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.chosen_experts(x, chosen) + self.bias


class BehindOneAnother(Experts):
    """Declined: whether the first loop's weights get a gradient is for the steps of both to say."""

    def forward(self, x, chosen):
        return self.chosen_experts(self.chosen_experts(x, chosen), chosen.flip(0))


class Asks(Experts):
    """Declined: the code asks what only the steps decide."""

    def forward(self, x, chosen):
        out = self.chosen_experts(x, chosen)
        return out + 2 if out.requires_grad else out


class AsksByName(Experts):
    def forward(self, x, chosen):
        out = self.chosen_experts(x, chosen)
        return out + 2 if getattr(out, "requires_grad") else out  # noqa: B009


class BreaksBetween(Experts):
    def forward(self, x, chosen):
        out = self.chosen_experts(x, chosen)
        torch._dynamo.graph_break()
        return self.chosen_experts(out + 1, chosen)
