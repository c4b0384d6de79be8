"""One small function for each mechanism, mended by the tests of the probes."""

import logging

import torch

logger = logging.getLogger("probed_module")


def says(x, text):
    y = x * 2
    logger.warning("said %s", text)
    return y + 1


def says_and_fails(x, index):
    logger.warning("before")
    return torch.index_select(x, 0, index) + 1


def guards(x, index):
    if x.sum() < 0:
        raise ValueError("x is negative")
    return torch.index_select(x, 0, index) + 1


def selects(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y * 2


def reads(x, n):
    y = x * 2
    return y[: n.item()] + 1


def captures(x, other):
    y = x + 0 * (x @ x)  # too much work to be done at each call for a guard
    rows = y[y > 0]
    return rows + other
