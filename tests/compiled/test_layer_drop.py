"""Why a layer that is dropped with a probability is selected: what `torch.cond` would make of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

DROP = 0.5  # the probability that a layer is dropped


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(8, 8), nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.linear(x)).relu()


def as_written(layers: nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        if torch.rand([]) < DROP:
            continue
        x = layer(x)
    return x


def under_cond(layers: nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        x = torch.cond(torch.rand([]) < DROP, lambda x: x.clone(), lambda x, layer=layer: layer(x), (x,))
    return x


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.slow
def test_cond_draws_again_in_the_backward_pass(dropout: float) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    layers = nn.ModuleList([Layer(dropout) for _ in range(2)])
    compiled = torch.compile(under_cond, backend="aot_eager", fullgraph=True)
    equal = []
    for seed in range(4):
        seen = []
        for call in (as_written, compiled):
            layers.zero_grad()
            torch.manual_seed(seed)
            x = torch.ones(4, 8, requires_grad=True)
            y = call(layers, x)
            y.sum().backward()
            gradients = [torch.zeros(1) if p.grad is None else p.grad for p in layers.parameters()]
            seen.append((y.detach(), [gradient.sum() for gradient in gradients], torch.rand(1)))
        torch.testing.assert_close(seen[1][0], seen[0][0])
        equal.append(all(map(torch.allclose, seen[0][1], seen[1][1])) and torch.equal(seen[0][2], seen[1][2]))
    assert all(equal) is (dropout == 0.0), "torch.cond keeps its draws by now: the layer may go under it"
