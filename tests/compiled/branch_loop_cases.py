"""``while`` loops that data ends.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each.
"""

from __future__ import annotations

import logging
import random

import torch
from expectations import SMALL, Expectation, register
from torch import Tensor, nn

EXPECT: dict[str, Expectation] = {}
logger = logging.getLogger(__name__)
case = register(EXPECT, inputs=((SMALL * 8,), (SMALL * 0.1,), (SMALL,), (SMALL.abs() + 3,)))


@case(train="GM102-T15", inductor=True)
def halved(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = x * 0.5
    return x


@case(train="GM102-T15", inductor=True)
def counted(x: Tensor) -> tuple[Tensor, int]:
    n = 0
    while (x.abs() > 1).any() and n < 20:
        x = torch.tanh(x) * 1.2
        n += 1
    return x, n


@case(train="GM102-T15")
def a_count_first(x: Tensor) -> tuple[Tensor, int]:
    left = 3
    while left > 0 and x.sum() > 1:
        x = x / 4
        left = left - 1
    return x, left


@case(train="GM102-T15")
def until_it_changes_little(x: Tensor) -> Tensor:
    last, y = torch.zeros(4, 8), x
    while (y - last).norm() > 1e-2:
        last = y
        y = y.cos()
    return y


@case(train="GM102-T15")
def a_number_is_read(x: Tensor) -> Tensor:
    while x.norm().item() > 1:
        x = x * 0.5
    return x


@case(train="GM102-T15")
def noise_in_each_step(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = x * 0.5 + torch.rand_like(x) * 0.01
    return x


@case(inductor=True)
def until_all_have_ended(x: Tensor) -> tuple[Tensor, Tensor, int]:
    token, done, n = x.detach().argmax(-1), torch.zeros(4, dtype=torch.bool), 0
    while not done.all() and n < 6:
        token = (token * 3 + 1) % 8
        done = done | (token == 0)
        n += 1
    return token, done, n


@case(train="GM102-T15")
def two_loops_and_a_log(x: Tensor) -> Tensor:
    n = 0
    while x.norm() > 4:
        x = x * 0.5
        n += 1
    while x.norm() < 2:
        x = x * 1.5
    logger.warning("%d halves", n)
    return x


@case()
class without_gradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.steps = nn.Linear(8, 8), -1

    def forward(self, x: Tensor) -> Tensor:
        n = 0
        with torch.no_grad():
            h = self.first(x)
            while h.abs().max() > 1:
                h = h * 0.7
                n += 1
        self.steps = n
        return self.first(h)


# --- left ------------------------------------------------------------------------------------------------------------


@case(declined="GM102-T15")
def a_size_grows(x: Tensor) -> Tensor:
    while x.sum() < 40 and x.shape[0] < 64:
        x = torch.cat([x, x.abs()])
    return x


@case(declined="GM102-T15")
def a_count_scales(x: Tensor) -> tuple[Tensor, int]:
    n = 2
    while x.norm() > 1:
        x = x / n
        n += 1
    return x, n


@case(declined="GM102-T15")
def memory_is_written_to(x: Tensor) -> Tensor:
    y = x.detach()
    while y.norm() > 1:
        y *= 0.5
    return x


@case(declined="GM102-T15")
def a_print_in_each_step(x: Tensor) -> Tensor:
    while x.norm() > 1:
        x = x * 0.5
        print("half")
    return x


@case(declined="GM102-R19")
def a_branch_in_each_step(x: Tensor) -> Tensor:
    while x.norm() > 1:
        if x.shape[0] > 2:
            x = x * 0.5
    return x


@case(declined="GM102-T15")
def the_result_is_written_to(x: Tensor) -> tuple[Tensor, Tensor]:
    """Where there is no step, it is what there was."""
    y = before = x.detach() * 1
    while y.norm() > 1:
        y = y * 0.5
    y.add_(1)
    return y, before * 1


@case(declined="GM102-R19")
def a_name_is_bound_in_the_test(x: Tensor) -> tuple[Tensor, Tensor]:
    while (norm := x.norm()) > 1:
        x = x * 0.5
    return x, norm


@case(declined="GM102-T15")
def a_draw_in_each_step(x: Tensor) -> Tensor:
    """As an input of the graph it would be drawn once."""
    while x.norm() > 1:
        x = x * random.uniform(0.4, 0.6)
    return x


class Looking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def goes_on(self, x: Tensor) -> Tensor:
        self.looks += 1
        return x.norm() > 1


@case(declined="-")
class a_test_that_counts(Looking):
    """It is evaluated as often as in eager."""

    def forward(self, x: Tensor) -> Tensor:
        while self.goes_on(x):
            x = x * 0.5
        return x
