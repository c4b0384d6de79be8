"""Sides of branches that draw, write statistics, or bind names alone; layers dropped at random.  Each is given (3, 4)."""

from __future__ import annotations

import logging

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger(__name__)
CASES: dict[str, type[Module]] = {}
LEFT: dict[str, type[Module]] = {}


class Module(nn.Module):
    def __init_subclass__(cls, left: bool = False) -> None:
        (LEFT if left else CASES)[cls.__name__] = cls

    def __init__(self) -> None:
        super().__init__()
        self.first, self.layers = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.p, self.last = 0.4, None
        self.register_buffer("noise", torch.zeros(4))
        self.make()

    def make(self) -> None:
        pass

    def forward(self, x):
        return self.act(self.first(x)), torch.rand(2)

    def act(self, x):
        raise NotImplementedError


# --- draws ----------------------------------------------------------------------------------------------------------


class AddsNoise(Module):
    def act(self, x):
        if torch.rand(1) < 0.5:
            x = x + 0.1 * torch.randn_like(x)
        return x


class Draws(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x + torch.rand(4) + torch.rand(4) + torch.randint(0, 5, (4,)) + torch.randn(3, 1)
        return x


class DrawsOnBothSides(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x + torch.randn(4)
        else:
            x = x + torch.rand(4) + torch.rand(4)
        return x


class DrawsInANestedSide(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x + torch.randn(4)
            if x.max() > 1:
                x = x + F.dropout(x, 0.2, self.training)
        return x


class DropsAll(Module):
    def act(self, x):
        if x.mean() > 0:
            x = F.dropout(x, 1.0, True) + F.dropout(x, 0.0, True)
        return x


class FillsWhatItMakes(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x * torch.empty(x.shape[0], 1).uniform_(0.8, 1.2) + torch.empty_like(x).normal_(0, 0.1)
            x = x * x.new_empty(3, 1).bernoulli_(0.5).div_(0.5)
        return x


class FillsWhatIsOlder(Module):
    def act(self, x):
        scale = torch.zeros(4)
        if x.mean() > 0:
            scale.normal_()
            self.noise.uniform_(-1, 1)
        return x + scale + self.noise


class Shuffles(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x[torch.randperm(x.size(0))]
        return x


class MixesUp(Module):
    def act(self, x):
        if torch.rand(()) < 0.5:
            share = torch.distributions.Beta(1.0, 1.0).sample()
            x = share * x + (1 - share) * x[torch.randperm(x.size(0))]
        return x


class Samples(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x + torch.multinomial(x.softmax(-1), 1) + torch.bernoulli(torch.full((3, 1), 0.5))
        return x


class SamplesFromDistributions(Module):
    def act(self, x):
        if x.mean() > 0:
            x = torch.distributions.Normal(x, 1.0).rsample()
            x = x + torch.distributions.Categorical(logits=x.detach()).sample()[:, None]
        return x


class SamplesWhatIsNoProbability(Module):
    """What the operation would fail on is nothing where the side is not taken."""

    def act(self, x):
        if (x >= -1).all():
            x = x + torch.bernoulli((x.detach() + 1) / 20) + torch.multinomial(x.detach() + 2, 2)[:, :1]
        return x


class KeepsADraw(Module):
    def act(self, x):
        if x.mean() > 0:
            self.last = torch.randn(2)
            log.info("drew %.3f", torch.rand(1).item())
        return x


class DecidesByADraw(Module):
    def act(self, x):
        if x.mean() > 0:
            if torch.rand(1).item() < 0.5:
                x = x * 2
            x = x + 1
        return x


class DrawsInSteps(Module):
    def act(self, x):
        for _ in range(4):
            if torch.rand(1) < 0.4:
                continue
            x = self.first(x) + 0.1 * torch.randn_like(x)
            if x.norm() < 1:
                break
        return x


class OfOtherTypes(Module):
    def act(self, x):
        if x.mean() > 0:
            x = x + torch.randn(4, dtype=torch.float64).float() + F.dropout(x.double(), 0.5).float()
        return x


class Attends(Module):
    def mask(self, x):
        return None

    def act(self, x):
        if x.mean() > 0:
            q = x.view(1, 3, 2, 2).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, q * 2, q + 1, self.mask(x), 0.3, scale=0.7)
            x = x + y.transpose(1, 2).reshape(3, 4)
        return x


class AttendsUnderAMask(Attends):
    def mask(self, x):
        return torch.tensor([[True, False, True], [False, False, False], [True, True, True]])


class AttendsUnderNumbers(Attends):
    def mask(self, x):
        return x.detach()[:, :3]


class DrawsByAnotherGenerator(Module, left=True):
    def make(self) -> None:
        self.generator = torch.Generator().manual_seed(3)

    def act(self, x):
        if x.mean() > 0:
            x = x + torch.randn(4, generator=self.generator)
        return x


class DrawsWithAGradient(Module, left=True):
    def act(self, x):
        if x.mean() > 0:
            x = F.gumbel_softmax(x)
        return x


class DrawsInAnOperand(Module, left=True):
    def act(self, x):
        if x.mean() > 0 and torch.rand(1) < 0.5:
            x = x * 2
        return x


# --- layers that are dropped ----------------------------------------------------------------------------------------


class DropsLayers(Module):
    def act(self, x):
        for layer in self.layers:
            if self.training and torch.rand([]) < self.p:
                continue
            x = F.dropout(layer(x), 0.1, self.training)
        return x


class DropsLayersByAFlag(Module):
    def act(self, x):
        for layer in self.layers:
            skip = True if self.training and (torch.rand([]) < self.p) else False  # noqa: SIM210
            if not skip:
                x = layer(x).relu()
        return x


class DropsLayersByAFlagThatIsBound(Module):
    def act(self, x):
        for layer in self.layers:
            to_drop = False
            if self.training:
                drawn = torch.rand([])
                if drawn < self.p:
                    to_drop = True
            if to_drop:
                found = (None, None)
            else:
                found = (layer(x), None)
                x = found[0]
            if not self.training:
                x = x + found[1]
        return x


class BindsWhatNobodyReads(Module):
    """`found` is bound on one side; what is read of it then is behind a test that Python knows."""

    def act(self, x):
        for layer in self.layers:
            skip = True if torch.rand([]) < self.p else False  # noqa: SIM210
            if not skip or not self.training:
                found = (layer(x), None)
                x = found[0]
            if skip:
                found = (None, None)
            if not self.training:
                x = x + found[1]
        return x


class ReadsWhatMayBeUnbound(Module, left=True):
    def act(self, x):
        if torch.rand([]) < 0.5:
            found = self.layers[0](x)
        if x.mean() > 100:
            x = x + found
        return x


# --- statistics -----------------------------------------------------------------------------------------------------


class Normalises(Module):
    def make(self) -> None:
        self.norm = nn.BatchNorm1d(4)

    def act(self, x):
        if x.mean() > 0:
            x = self.norm(x)
        return x


class DropsLayersWithStatistics(Module):
    def make(self) -> None:
        self.norms = nn.ModuleList(nn.BatchNorm1d(4, momentum=momentum) for momentum in (0.1, 0.3, 0.5))

    def act(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            if torch.rand([]) < self.p:
                continue
            x = F.dropout(norm(layer(x)), 0.1, self.training)
        return x


class DropsLayersAndCounts(Module):
    """What it writes to has copies; `squeeze_` changes the shape of a tensor, which none has."""

    def make(self) -> None:
        self.register_buffer("count", torch.zeros(()))

    def act(self, x):
        self.count.add_(1)
        for layer in self.layers:
            if torch.rand([]) < self.p:
                continue
            y = layer(x).unsqueeze(1) * 2
            x = y.squeeze_(1) if self.squeezes else y.squeeze(1)
        return x

    squeezes = False


class DropsLayersAndSqueezes(DropsLayersAndCounts, left=True):
    squeezes = True
