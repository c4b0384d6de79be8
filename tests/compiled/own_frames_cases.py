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
