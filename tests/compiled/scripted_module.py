"""A function that torch.jit.script can compile, prints included."""

import torch


def scripted(x: torch.Tensor) -> torch.Tensor:
    print("scripted")
    return x + 1
