"""Sides in which something is looked up, at places that may not be there: eager looks where the side is taken alone."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(4, 4), nn.Embedding(4, 4)


class Gathers(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y.gather(1, places) * 2
        return y


class GathersByName(Base):
    def forward(self, x, places):
        y = self.layer(x)
        return torch.gather(y, dim=-1, index=places) if y.sum() > 0 else y


class Classifies(Base):
    def forward(self, x, places):
        y = self.layer(x)
        loss = y.mean()
        if y.sum() > 0:
            loss = loss + F.cross_entropy(y, target=places[:, 0], ignore_index=2, label_smoothing=0.1)
        return loss


class Embeds(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y + self.table(places[:, 0])
        return y


class Selects(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y + self.table.weight.index_select(0, places[:, 1])
        return y


class TakesRows(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y + self.table.weight[places[:, 0]]
        return y


class TakesElements(Base):
    def forward(self, x, places):
        y = self.layer(x)
        loss = y.mean()
        if y.sum() > 0:
            loss = loss - y.log_softmax(1)[torch.arange(3), places[:, 0]].mean()
        return loss


class Scatters(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * torch.zeros_like(y).scatter(1, places, 1.0) + torch.zeros_like(y).scatter_add(1, places, y)
        return y


class MarksClasses(Base):
    def forward(self, x, places):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * F.one_hot(places[:, 0], 4)
        return y


class StopsEarly(Base):
    """CleanRL and Stable-Baselines3: minibatches until the policy has moved too far."""

    def forward(self, x, places):
        total = 0.0
        for column in range(3):
            scores = self.layer(x).log_softmax(1)
            total = total + F.nll_loss(scores, places[:, column])
            if total > 4:
                break
        return total


class Factorises(Base):
    """linear_operator, `psd_safe_cholesky`."""

    def forward(self, x, places):
        matrix = self.layer(x)[:, :3]
        matrix = matrix @ matrix.T
        factor, info = torch.linalg.cholesky_ex(matrix)
        if torch.any(info):
            factor, info = torch.linalg.cholesky_ex(matrix + torch.eye(3))
        return factor


ALL = (
    *(Gathers, GathersByName, Classifies, Embeds, Selects, TakesRows, TakesElements, Scatters, MarksClasses),
    *(StopsEarly, Factorises),
)
