"""What ``graphmend doctor`` has mended to see that it works: a log line, a guard and a branch."""

from __future__ import annotations

import logging

import torch

logger = logging.getLogger(__name__)


def step(x: torch.Tensor) -> torch.Tensor:
    logger.warning("%d numbers", x.numel())
    if x.min() < 0:
        raise ValueError("a negative number")
    if x.sum() > 10:  # noqa: SIM108  the statement is what is tested
        y = x * 2
    else:
        y = x + 1
    return y
