"""Training as people write it, twenty steps each.  Imported twice: as it is, and mended.

What is compiled is a function of the script, or its model: it logs, keeps meters, clips, warms up, and leaves out
batches that are bad.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

log = logging.getLogger("training_loop_cases")
STEPS = 20
Batch = tuple[Tensor, Tensor]
Compile = Callable[[Any], Any]


def batches(bad: int = -1) -> Iterator[Batch]:
    """bad: the place of one with a number that is none."""
    for place in range(STEPS):
        x = torch.randn(6, 8)
        if place == bad:
            x[0, 0] = float("nan")
        yield x, torch.randint(0, 4, (6,))


class Classifier(nn.Module):
    """A network with dropout and a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(F.dropout(F.relu(self.norm(self.first(x))), 0.1, self.training))
        return logits


class Logging(Classifier):
    """Logs its loss now and then, and what is large whenever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.best = 0, float("inf")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        logits = super().forward(x)
        loss = F.cross_entropy(logits, y)
        self.calls += 1
        if self.calls % 5 == 0:
            log.info(
                "step %d: loss %.4f, accuracy %.2f", self.calls, loss.item(), (logits.argmax(-1) == y).float().mean()
            )
        if loss.item() < self.best:
            self.best = loss.item()
            log.info(f"new best: {self.best:.4f}")
        if logits.abs().max() > 2.5:
            log.warning("large logits: %s", round(logits.abs().max().item(), 3))
        return loss


def logs(compiled: Compile, optimized: Any) -> Any:
    model = Logging()
    call, step = compiled(model), optimized(model)
    for x, y in batches():
        step(call(x, y))
    return model, (model.calls, model.best)


@dataclass
class Meter:
    total: float = 0.0
    count: int = 0
    history: list[float] = field(default_factory=list)

    def update(self, value: float, n: int = 1) -> None:
        self.total += value * n
        self.count += n
        self.history.append(value)

    @property
    def mean(self) -> float:
        return self.total / max(self.count, 1)


def meters(compiled: Compile, optimized: Any) -> Any:
    """Averages of what each step gives, in meters of the script, and a print of them."""
    model, found = Classifier(), defaultdict(Meter)
    losses, accuracies = found["loss"], found["accuracy"]

    def train_step(x: Tensor, y: Tensor) -> Tensor:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        losses.update(loss.item(), x.size(0))
        accuracies.update((logits.argmax(-1) == y).float().mean().item(), x.size(0))
        print(f"loss {loss.item():.4f}")
        return loss

    call, step = compiled(train_step), optimized(model)
    for x, y in batches():
        step(call(x, y))
    return model, {name: (meter.total, meter.count, meter.history, meter.mean) for name, meter in found.items()}


class Clipping(Classifier):
    """Clips what it gives by its norm, adapts the bound, and counts how often."""

    def __init__(self) -> None:
        super().__init__()
        self.bound, self.clipped = 6.0, 0

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        logits = super().forward(x)
        norm = logits.norm().item()
        if norm > self.bound:
            logits = logits * (self.bound / norm)
            self.clipped += 1
        self.bound = max(4.0, self.bound * 0.99)
        return F.cross_entropy(logits, y)


def clips(compiled: Compile, optimized: Any) -> Any:
    model = Clipping()
    call, step = compiled(model), optimized(model)
    for x, y in batches():
        step(call(x, y))
    return model, (model.bound, model.clipped)


class WarmingUp(Classifier):
    """The weight of a part of the loss grows, a temperature falls, and a moving average follows."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.temperature = 0, 2.0
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        logits = super().forward(x) / self.temperature
        scale = min(1.0, (self.step + 1) / 10)
        with torch.no_grad():
            mean = logits.softmax(-1).mean(0)
            if self.seen == 0:
                self.average.copy_(mean)
            else:
                self.average.lerp_(mean, 0.1)
            self.seen += 1
        spread = (logits.softmax(-1).mean(0) - self.average).pow(2).sum()
        self.step += 1
        self.temperature = max(0.5, self.temperature * 0.97)
        return F.cross_entropy(logits, y) + scale * spread


def warms_up(compiled: Compile, optimized: Any) -> Any:
    model = WarmingUp()
    call, step = compiled(model), optimized(model)
    for x, y in batches():
        step(call(x, y))
    return model, (model.step, model.temperature, model.average.tolist(), int(model.seen))


def leaves_out(compiled: Compile, optimized: Any) -> Any:
    """A batch that is bad counts nothing, and is said."""
    model, skipped = Classifier(), []

    def train_step(x: Tensor, y: Tensor, number: int) -> Tensor:
        loss = F.cross_entropy(model(torch.nan_to_num(x)), y)
        if not torch.isfinite(x).all():
            log.warning("batch %d is left out, its loss is %.3f", number, loss.item())
            skipped.append(number)
            loss = loss * 0
        return loss

    call, step = compiled(train_step), optimized(model)
    for number, (x, y) in enumerate(batches(bad=7)):
        step(call(x, y, number))
    return model, skipped


LOOPS: dict[str, Callable[[Compile, Any], Any]] = {
    loop.__name__: loop for loop in (logs, meters, clips, warms_up, leaves_out)
}
