"""Clocks that a model reads.  Imported twice: as it is, and mended."""

from __future__ import annotations

import logging
import time
from time import perf_counter

import torch

log = logging.getLogger("clock_cases")


class Timed(torch.nn.Module):
    """Effects and state that a clock goes into."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.total, self.times = torch.nn.Linear(3, 3), 0.0, []
        self.last: float | None = None
        self.slow = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        x = self.layer(x)
        took = perf_counter() - start
        self.total += took
        self.times.append(took)
        self.times.append(time.perf_counter() - start)
        log.warning("%s took %.6f", x.shape[0], took)
        log.warning(f"{1000 * (time.perf_counter() - start):.6f} ms")
        return x


class Returned(Timed):
    """A reading that is given back: all are of the call, and in order."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[float], list[int]]:
        first, first_ns = time.time(), time.monotonic_ns()
        x = self.layer(x)
        second, second_ns = time.time(), time.monotonic_ns()
        return x, [first, second, time.time()], [first_ns, second_ns, time.monotonic_ns()]


class Since(Timed):
    """What the call before has stored: its value is not looked at, only whether it is there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        now = time.monotonic()
        if self.last is not None:
            self.times.append(now - self.last)
        self.last = now
        return x


class OfEachLayer(Timed):
    """The time of each layer, which one graph does not have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            start = time.perf_counter()
            x = self.layer(x)
            self.times.append(time.perf_counter() - start)
        return x


class Guards(Timed):
    """A guard behind a clock."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        x = self.layer(x)
        if x.isnan().any():
            raise ValueError("not a number")
        self.last = time.perf_counter() - start
        return x.mul_(2)


class Decides(Timed):
    """Python asks for what is only known behind the graph: the model breaks as it does without the hook."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        x = self.layer(x)
        if time.perf_counter() - start > 600:
            self.slow = True
        return x


class Computes(Timed):
    """A graph is computed with the time before it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        now = time.time()
        return self.layer(x) * (0.0 if now > 0 else 1.0)
