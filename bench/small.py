"""One small model for each rule that mends a graph break; ``python -m bench.rules`` times them.

Each takes `x` (rows, 128).  The tests are made of what a layer gives, so that no guard decides them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH, LAYERS, EXPERTS = 128, 6, 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH))
        self.rest = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Clamped(Block):
    """[Where]."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        if torch.isinf(x).any():
            x = torch.clamp(x, -1e4, 1e4)
        return x + self.rest(x)


class Checked(Block):
    """[Trap]."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        if torch.isnan(x).any():
            raise ValueError(f"not a number among {x.shape}")
        return x + self.rest(x)


class Counted(Block):
    """[Value], with a symbol."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        count = (x[:, 0] > x[:, 1]).sum().item()
        y = self.rest(x[:count])
        return x + y.mean(0).tanh()


class Routed(Block):
    """[Sweep]."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        experts = x[:, :EXPERTS].topk(2, dim=-1).indices
        hit = nn.functional.one_hot(experts, num_classes=EXPERTS).permute(2, 1, 0)
        y = torch.zeros_like(x)
        for expert in range(EXPERTS):
            _, rows = torch.where(hit[expert])
            y.index_add_(0, rows, self.rest(x[rows]))
        return x + y


class Recurrent(Block):
    """[Value], with a recurrent layer: sequences of eight rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        y, _ = self.layer(x.view(-1, 8, WIDTH))
        return x + self.rest(y.reshape(-1, WIDTH))


MODELS = {model.__name__: model for model in (Clamped, Checked, Counted, Routed, Recurrent)}


def build(name: str) -> nn.Module:
    """`LAYERS` blocks of that name, one after the other."""
    torch.manual_seed(0)
    return nn.Sequential(*(MODELS[name]() for _ in range(LAYERS))).eval()
