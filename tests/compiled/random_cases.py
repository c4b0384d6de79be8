"""Random draws: their ranges, their texts, and the generators behind them."""

from __future__ import annotations

import logging
import math
import random

import numpy as np
import torch
from programs import of, of_each

logger = logging.getLogger("random_cases")


# --- draws whose range is not known -----------------------------------------------------------------------------------


def draws_up_to_no_number(x):
    if random.uniform(0.5, math.nan) < 1:
        x = x + 100
    return x


def draws_beyond_all_numbers(x):
    if random.uniform(-1e308, 1e308) <= 1e308:
        x = x + 100
    return x


def draws_below_a_size(x):
    v = torch.randint(1, x.shape[0], (1,))
    if v >= 1:
        return x[v], x + 1
    return x - 1, x


def draws_a_number_below_a_size(x):
    x.add_(1)
    v = torch.randint(1, x.shape[0], ()).item()
    if v >= 1:
        return x + v
    return x - 100


def case_draws(C):
    found = []
    for function in (draws_up_to_no_number, draws_beyond_all_numbers, draws_below_a_size, draws_a_number_below_a_size):
        compiled = C(function)
        for size in (9, 7, 5):
            random.seed(1)
            torch.manual_seed(9)
            found.append(compiled(torch.arange(float(size))))
    return found


# --- numbers that Python draws, in texts ------------------------------------------------------------------------------


def says_a_draw(x):
    logger.warning("shift %d", random.randint(0, 5))
    return x * 2


def says_draws_in_containers(x):
    numbers = [random.randint(0, 9), {"a": random.random()}]
    logger.warning("numbers %s", numbers)
    numbers.append(1)
    return x * 2


def says_nothing_of_a_draw(x):
    logger.debug("off %s", random.randint(0, 9))
    return x * 2


def refuses_by_a_draw(x):
    number = random.randint(0, 2)
    if x.sum() > 0:
        raise ValueError(f"number {number}")
    return x + 1


def asserts_by_a_draw(x):
    number = random.uniform(0, 2)
    assert x.sum() <= 0, f"number {number}"
    return x + 1


def says_a_draw_in_a_side(x):
    number = random.randint(0, 2)
    if x.sum() > 0:
        logger.warning("number %d", number)
        x = x * 2
    return x


DRAWING = (
    *(says_a_draw, says_draws_in_containers, says_nothing_of_a_draw, refuses_by_a_draw, asserts_by_a_draw),
    says_a_draw_in_a_side,
)


def case_numbers_that_python_draws(C):
    random.seed(0)
    return [of_each(C, DRAWING), random.random()]


def case_draws_of_what_changes(C):
    """A number that has changed is a symbol to Dynamo, which numpy cannot take; a scale below 0 is refused."""

    def draws(x, n):
        drawn = np.random.normal(n)  # noqa: F841
        return x * 2

    def is_refused(x, scale):
        drawn = np.random.normal(0.0, scale)  # noqa: F841
        return x * 2

    found = []
    compiled = C(draws)
    for n in (2, 3, 5, 6):
        np.random.seed(0)
        found.append([compiled(of(n), n), np.random.random()])
    compiled = C(is_refused)
    for scale in (1.0, -1.0):
        np.random.seed(0)
        try:
            found.append(compiled(of(1), scale))
        except Exception as error:
            found.append(type(error).__name__)  # in the text Dynamo shows the line that it has compiled
        found.append(np.random.random())
    return found
