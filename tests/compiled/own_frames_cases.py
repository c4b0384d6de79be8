"""Programs in which a function of ours could become a frame of Dynamo's: it calls ours in eager, or breaks in one."""

import torch


class SelectsByAMaskAndAPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tensor([True, False, True]))

    def forward(self, x):
        return x[self.mask, 0] * 2


class WritesByAMaskAndAPlace(SelectsByAMaskAndAPlace):
    def forward(self, x):
        y = x.clone()
        y[self.mask, 1:] = 0.0
        return y


class SelectsByAPlace(SelectsByAMaskAndAPlace):
    def forward(self, x):
        return x[(self.mask.long(), 0)] + x[(0,)]


def gives_tuples_of_other_lengths(x):
    if x.sum() > 0:
        found = (x, 1)
    else:
        found = (x, 1, 2)
    return found[0] * len(found)


def is_given_up(x):
    for step in range(2):
        torch._dynamo.graph_break()
        if x.sum() > step:
            x = x * 2
        if x.min() < -100:
            raise ValueError("too small")
    return x


def is_one(x):
    if isinstance(x, (int, float)):
        return x == 1
    if isinstance(x, torch.Tensor) and x.dtype is torch.int64 and not x.shape:
        return x.item() == 1
    return False


def scales(x, scale=1.0, mask=None):
    if is_one(x) or (mask is None and is_one(scale)):
        return x
    if x.sum() > 0:
        raise ValueError("too large")
    return x * scale
