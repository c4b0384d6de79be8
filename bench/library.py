"""Functions with and without log sites, for the cost of a call.  The sites are never reached with ``level`` 0."""

from __future__ import annotations

import logging

import torch

logger = logging.getLogger("bench.library")
logger.addHandler(logging.NullHandler())
logger.propagate = False
SITES = 8


def silent(level: int) -> int:
    """`SITES` log statements that every call passes and whose level is off."""
    logger.debug("1")
    logger.debug("2")
    logger.debug("3")
    logger.debug("4")
    logger.debug("5")
    logger.debug("6")
    logger.debug("7")
    logger.debug("8")
    return level


def quiet_model(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x) + 1


def model_with_a_constant_log(x: torch.Tensor) -> torch.Tensor:
    logger.info("constant")
    return torch.relu(x @ x) + 1


def model_with_a_tensor_log(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x @ x) + 1
    logger.info("mean %s", y.mean())
    return y
