"""Modules that write to their buffers in a graph which takes for granted what the data decides."""

from __future__ import annotations

import torch
from torch import nn


class Counted(nn.Module):
    """Counters, and as many rows as there are others: one is broadcast in eager, and of other numbers both fail."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        self.seen.add_((x > 0).float())
        picked = x[x > 0]
        return (picked + torch.arange(6.0)).sum()


class Normalized(nn.Module):
    """A batch normalisation in training, whose statistics the graph updates."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        y = self.norm(torch.stack((x, x * 2), 1))
        picked = y[x > 0]
        return (picked + torch.arange(12.0).view(6, 2)).sum(0)


class Queued(nn.Module):
    """A queue with a pointer in a buffer, after MoCo; its weights get other memory in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("queue", torch.zeros(2, 9))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def forward(self, x):
        self.weight.data = self.weight.data * 0.5 + 1
        keys = x.view(3, 2) * self.weight
        place = int(self.place)
        self.queue[:, place : place + 3] = keys.T
        self.place[0] = place + 3  # at the fourth call the queue is full, and what is written does not fit
        return keys.sum() + self.queue.sum()


class Split(nn.Module):
    """Rows sorted by expert, split by counts that are read with `tolist`, beside a count of the load."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
        self.register_buffer("load", torch.zeros(3))

    def forward(self, x):
        rows = x.view(3, 2)
        chosen = (rows.sum(1) > 0).long() + (rows.sum(1) > 1).long()
        counts = torch.bincount(chosen, minlength=3)
        with torch.no_grad():
            self.load.add_(counts)
        parts = torch.split(rows[chosen.argsort()], counts.tolist())
        return torch.cat([expert(part) for expert, part in zip(self.experts, parts)])


CASES = (Counted, Normalized, Queued, Split)
