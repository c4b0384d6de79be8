"""Modules that ask for gradients themselves, by ``torch.autograd.grad``: penalties, scores, adaptive weights."""

from __future__ import annotations

import logging

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad

logger = logging.getLogger(__name__)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("m", torch.zeros(4))
        self.drop, self.seen = nn.Dropout(0.5), []


class WeighsLosses(Base):
    """VQGAN."""

    def forward(self, x):
        y = self.b(F.relu(self.a(x)))
        loss, other = (y - x).abs().mean(), -y.mean()
        one = grad(loss, self.b.weight, retain_graph=True)[0]
        two = grad(other, self.b.weight, retain_graph=True)[0]
        weight = torch.clamp(one.norm() / (two.norm() + 1e-4), 0.0, 1e4).detach()
        return loss + weight * other


class Scores(Base):
    def forward(self, x):
        x = x.detach().requires_grad_()
        return grad(self.b(self.a(x).tanh()).sum(), x)[0]


class Differentiates(Base):
    """A network for a differential equation."""

    def forward(self, x):
        t = x[:, :1].detach().requires_grad_()
        u = self.b(torch.cat([t.sin(), x[:, 1:]], 1)).tanh()
        change = grad(u, t, torch.ones_like(u), create_graph=True)[0]
        return (change - u).pow(2).mean().detach()


class Adapts(Base):
    """MAML."""

    def forward(self, x):
        weight, bias = self.a.weight, self.a.bias
        for _ in range(2):
            loss = F.linear(x, weight, bias).pow(2).mean()
            steps = grad(loss, (weight, bias), create_graph=True)
            weight, bias = weight - 0.1 * steps[0], bias - 0.1 * steps[1]
        return F.linear(x, weight, bias).pow(2).mean()


class KeepsAnAverage(Base):
    def forward(self, x):
        loss = (self.a(x) * (self.m + 1)).pow(2).mean()
        found = grad(loss, self.a.weight, create_graph=True)[0]
        self.m.mul_(0.9).add_(found.detach().mean(0))
        return loss + found.pow(2).sum()


class BranchesBehind(Base):
    def forward(self, x):
        y = self.a(x)
        found = grad(y.pow(2).mean(), self.a.weight, retain_graph=True)[0]
        if found.norm() > 1:
            found = found / found.norm()
        return y.sum() + (found * self.b.weight).sum()


class ChecksAndLogs(Base):
    def forward(self, x):
        loss = self.a(x).pow(2).mean()
        found = grad(loss, self.a.weight, create_graph=True)[0]
        if torch.isnan(found).any():
            raise ValueError("nan")
        logger.info("norm %.3f", found.norm().item())
        self.seen.append(loss.item())
        return loss + found.pow(2).mean()


class AllowsUnused(Base):
    def forward(self, x):
        loss = self.a(x).pow(2).mean()
        used, unused = grad(loss, [self.a.weight, self.b.weight], allow_unused=True, retain_graph=True)
        return loss + used.sum(), unused


class DropsOut(Base):
    def forward(self, x):
        loss = self.b(self.drop(self.a(x))).pow(2).mean()
        return loss + grad(loss, self.a.weight, create_graph=True)[0].pow(2).sum()


class Checkpoints(Base):
    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(lambda y: self.b(self.a(y).tanh()), x, use_reentrant=False)
        loss = y.pow(2).mean()
        return loss + grad(loss, self.a.weight, retain_graph=True)[0].sum()


class ByKeywords(Base):
    def forward(self, x):
        y = self.a(x).pow(2)
        given = {"outputs": [y.sum(), y.mean()], "inputs": [self.a.weight, self.a.bias], "retain_graph": True}
        return grad(**given)[1].sum() + y.sum()


class Triples(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, given):
        (x,) = ctx.saved_tensors
        return 3 * x * given


class CallsAFunction(Base):
    def forward(self, x):
        loss = Triples.apply(self.a(x)).mean()
        return loss + grad(loss, self.a.weight, retain_graph=True)[0].sum()


class HooksAParameter(Base):
    """The gradient that is asked for is three times what the graph would give."""

    def __init__(self):
        super().__init__()
        self.a.weight.register_hook(lambda given: given * 3)

    def forward(self, x):
        loss = self.b(self.a(x).tanh()).pow(2).mean()
        return loss + grad(loss, self.a.weight, retain_graph=True)[0].norm()


class IsHookedLater(Base):
    """The test adds a hook to a parameter between the calls."""

    def forward(self, x):
        loss = self.b(self.a(x).tanh()).pow(2).mean()
        return loss + grad(loss, self.a.weight, retain_graph=True)[0].norm()

    def between(self, call):
        if call == 1:
            self.a.weight.register_hook(lambda given: given * 3)


class HooksAResult(Base):
    def forward(self, x):
        y = self.a(x)
        y.register_hook(lambda given: given * 3)
        loss = self.b(y.tanh()).pow(2).mean()
        return loss + grad(loss, self.a.weight, retain_graph=True)[0].norm()


class BranchesBefore(Base):
    """None where the side was not taken, and no zeros."""

    def forward(self, x):
        y = self.a(x)
        if x.sum() > 0:
            y = self.b(y)
        else:
            y = y * 2
        found = grad(y.pow(2).mean(), self.b.weight, retain_graph=True, allow_unused=True)[0]
        return y.sum(), found is None


class UsesNone(Base):
    def forward(self, x):
        return grad(self.a(x).pow(2).mean(), [self.a.weight, self.b.weight])[0]


class AsksTwice(Base):
    def forward(self, x):
        loss = self.a(x).tanh().pow(2).mean()
        return grad(loss, self.a.weight)[0] + grad(loss, self.a.weight)[0]


class IsOutside(Base):
    """Of an input that has a gradient of its own."""

    def forward(self, x):
        x = x * self.a.weight.sum()
        return grad((self.b(x) * x).sum(), self.b.weight, retain_graph=True)[0] * 2, x.sum()


class StepsItself(Base):
    def forward(self, x):
        loss = self.a(x).pow(2).mean()
        found = grad(loss, self.a.weight)[0]
        with torch.no_grad():
            self.a.weight -= 0.1 * found
        return loss.detach()


ONE_GRAPH = (
    *(WeighsLosses, Scores, Differentiates, Adapts, KeepsAnAverage, BranchesBehind, ChecksAndLogs, AllowsUnused),
    *(DropsOut, Checkpoints, ByKeywords, CallsAFunction),
)
OTHERS = (HooksAParameter, IsHookedLater, HooksAResult, BranchesBefore, UsesNone, AsksTwice, IsOutside, StepsItself)
