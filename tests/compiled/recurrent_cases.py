"""Modules with recurrent layers."""

from __future__ import annotations

import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.before, self.layer = nn.Linear(8, 8), layer

    def forward(self, x, state=None):
        x = self.before(x).relu()
        log.info("%d steps", x.shape[1])
        y, state = self.layer(x, state)
        return y.tanh(), state


class Straight(Recurrent):
    def forward(self, x, state=None):
        log.info("%d steps", x.shape[1])
        y, state = self.layer(x, state)
        return y.tanh(), state


class Breaks(Recurrent):
    def forward(self, x, state=None):
        y, state = self.layer(self.before(x), state)
        torch._dynamo.graph_break()
        return y.tanh(), state


class TrainsBehind(Recurrent):
    def forward(self, x, state=None):
        with torch.no_grad():
            layer = self.layer
        y, state = layer(self.before(x), state)
        log.info("done")
        return y.tanh(), state
