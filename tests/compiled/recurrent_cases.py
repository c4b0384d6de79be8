"""Modules with recurrent layers: each is given a tensor (3, steps, 4)."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger(__name__)
CASES: dict[str, type[Module]] = {}
LEFT: dict[str, type[Module]] = {}


class Module(nn.Module):
    kind: ClassVar[type[nn.RNNBase]] = nn.GRU
    options: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, left: bool = False, **options: Any) -> None:
        (LEFT if left else CASES)[cls.__name__] = cls

    def __init__(self) -> None:
        super().__init__()
        self.before, self.layer = nn.Linear(4, 4), self.kind(4, 4, batch_first=True, **self.options)
        self.state: Any = None

    def forward(self, x):
        y, state = self.layer(self.before(x).relu())
        log.info("%d steps, at most %.3f", x.shape[1], y.max().item())
        return (y.tanh(), *(state if isinstance(state, tuple) else (state,)))


class OneGRU(Module):
    pass


class OneLSTM(Module):
    kind = nn.LSTM


class OneRNN(Module):
    kind = nn.RNN


class RectifiedRNN(Module):
    kind, options = nn.RNN, {"nonlinearity": "relu", "bias": False}


class BothWays(Module):
    kind, options = nn.LSTM, {"num_layers": 2, "bidirectional": True}


class BothWaysGRU(Module):
    options = {"num_layers": 2, "bidirectional": True}


class Drops(Module):
    options = {"num_layers": 3, "dropout": 0.4}

    def forward(self, x):
        y, _ = self.layer(x + torch.rand(1))
        return y, torch.rand(2)


class DropsTwice(Drops):
    """No two draws are one, though they are given the same."""

    def forward(self, x):
        with torch.no_grad():
            return self.layer(x)[0], self.layer(x)[0]


class Projects(Module):
    kind, options = nn.LSTM, {"proj_size": 3}


class IsStraight(Module):
    """No statement is rewritten, and no gradient is asked of the input."""

    def forward(self, x):
        y, (_, cell) = self.layer(x)
        return y[:, -1], cell

    kind = nn.LSTM


class OfDoubles(Module):
    def __init__(self) -> None:
        super().__init__()
        self.double()

    def forward(self, x):
        return super().forward(x.double())


class KeepsItsState(Module):
    def forward(self, x):
        y, state = self.layer(x, self.state)
        self.state = state.detach()
        return y


class StepByStep(Module):
    """A decoder: the layer is called for each step, with what it gave before."""

    kind, options = nn.LSTM, {"num_layers": 2}

    def forward(self, x):
        _, state = self.layer(x)
        y, found = x[:, -1:], []
        for _ in range(4):
            y, state = self.layer(y, state)
            y = self.before(y)
            found.append(y)
        return torch.cat(found, 1)


class StepByStepGRU(Module):
    def forward(self, x):
        y, state, found = x[:, :1], None, []
        for _ in range(4):
            y, state = self.layer(y, state)
            found.append(y)
        return torch.cat(found, 1)


class OfTwo(Module):
    kind = nn.LSTM

    def forward(self, x):
        return self.layer(x)[0] * self.layer(x.flip(1))[0]


class Residual(Module):
    def forward(self, x):
        x = self.before(x)
        return x + self.layer(x)[0]


class IsFrozen(Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer.requires_grad_(False)


class WithoutGradients(Module):
    def forward(self, x):
        with torch.no_grad():
            y, _ = self.layer(x)
        return self.before(y)


class WritesToItsInput(Module, left=True):
    def forward(self, x):
        x = self.before(x)
        y, _ = self.layer(x)
        x.add_(1)
        y.mul_(2)
        return y + x.sum()


class Unbatched(Module):
    kind = nn.LSTM

    def forward(self, x):
        y, (hidden, _) = self.layer(x[0])
        return y, hidden


class IsFlattened(Module):
    def forward(self, x):
        self.layer.flatten_parameters()
        return self.layer(x)[0].contiguous().view(-1, 4), self.layer.hidden_size


class OfACell(Module):
    """What computes each step by itself is no operator, and need not be one."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 4)
        for step in range(3):
            state = self.cell(x[:, step], state)
        return F.log_softmax(state, -1)


class CalledByName(Module):
    """The function itself, of a module that has weights of its own."""

    def forward(self, x):
        state = x.new_zeros(1, x.shape[0], 4)
        y, _ = torch.gru(x, state, [*self.layer.parameters()], True, 1, 0.0, self.training, False, True)
        return y


class Own(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


class OfAClassOfItsOwn(Module):
    kind = Own

    def forward(self, x):
        return self.layer(self.before(x))


class KeepsItsStateInABuffer(Module, left=True):
    """Eager reads what the buffer was, since nothing that it has kept of it is needed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer.requires_grad_(False)
        self.register_buffer("held", torch.zeros(1, 3, 4))

    def forward(self, x):
        y, state = self.layer(self.before(x), self.held)
        self.held.copy_(state.detach())
        return y


class ChangesAWeight(Module, left=True):
    kind = nn.LSTM

    def forward(self, x):
        y, state = self.layer(x)
        self.layer.weight_hh_l0.data.mul_(0.9)
        return y + self.layer(x, state)[0]


class OfTwoGRUs(Module, left=True):
    """Eager adds up what every step of both calls gives to the weights, one after the other."""

    def forward(self, x):
        return self.layer(x)[0] * self.layer(x.flip(1))[0]


class ResidualBothWays(Module, left=True):
    kind = nn.LSTM
    options = {"bidirectional": True}

    def forward(self, x):
        x = self.before(x)
        return x.repeat(1, 1, 2) + self.layer(x)[0]


class IsCaught(Module, left=True):
    def forward(self, x):
        try:
            return self.layer(x)[0]
        except RuntimeError:
            return x


class UnderAutocast(Module, left=True):
    kind = nn.LSTM

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layer(x)[0].float()
