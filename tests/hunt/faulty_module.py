"""A library with something for every rule, which `faults` mends while one of our functions fails."""

import logging

import numpy as np
import torch

logger = logging.getLogger("faulty_module")


class GuardError(ValueError):
    pass


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.seen = None

    def forward(self, x, n):
        logger.warning("forward %d", n)
        if (x > 90).any():
            raise GuardError(f"too large: {x.max()}")
        if x.sum() > 0:
            y = x * self.w
        else:
            y = x - self.w
        if self.seen is None:
            self.seen = y
        scale = n.item() if isinstance(n, torch.Tensor) else n
        y = y * scale
        draw = np.random.uniform()
        if self.training and draw < 0.0:
            return y
        logger.info("scaled by %s", scale)
        return clamp(y)


def clamp(t):
    if t.dtype == torch.float32 and (torch.isinf(t).any() or torch.isnan(t).any()):
        t = torch.clamp(t, min=-100, max=100)
    return t


def rows(t):
    found = t[t > 0]
    print("rows", t.dim())
    return found * 2


def experts(t):
    out = torch.zeros_like(t)
    hit = torch.stack([t > 0, t < 0, t > 900])
    for e in range(3):
        (index,) = torch.where(hit[e])
        if index.shape[0] == 0:
            continue
        out.index_add_(0, index, t[index] * 2)
    return out


def first(t, index):
    logger.warning("before")
    return torch.index_select(t, 0, index)
