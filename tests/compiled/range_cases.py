"""Tests that the range of a random draw decides, and some that it does not: each takes a tensor and a number."""

import random

import torch

# --- decided -----------------------------------------------------------------------------------------------------------


def below_zero(x, p):
    return x + 1 if torch.rand([]) < p - p else x * 2


def at_least_one(x, p):
    return x + 1 if torch.rand(1) >= 1 else x.sin()


def kept_for_certain(x, p):
    drawn = torch.rand([])
    if 1 - drawn < 0:
        return x.cos()
    return x * 2


def scaled(x, p):
    drawn = torch.rand([], dtype=torch.float64) * 0.5 + 0.25
    if drawn > 0.75:
        return x.cos()
    if drawn >= 0.25:
        return x * 2
    return x


def of_many(x, p):
    if (torch.rand_like(x) > 1).any():
        return x.cos()
    return x * 2


def joined(x, p):
    if x.dim() == 1 and (torch.rand([]) < 0.0) & (x.sum() > 0):
        return x.cos()
    return x * 2


def negated(x, p):
    skip = torch.rand([]) < 0
    if not skip:
        return x * 2
    return x.cos()


def uniform(x, p):
    drawn = torch.empty(1).uniform_(0, 1)
    if drawn.item() < 0.0 or drawn < 0.0:
        return x.cos()
    return x * 2


def spread(x, p):
    if torch.empty(3).uniform_(-1.0, 1.0).max() > 1.1:
        return x.cos()
    return x * 2


def never(x, p):
    if (torch.empty([]).bernoulli_(0.0) == 1).any():
        return x.cos()
    return x * 2


def whole(x, p):
    drawn = torch.randint(2, 5, (1,))
    if (drawn == 5).any():
        return x.cos()
    return x * 2 if (drawn >= 2).all() else x


def squashed(x, p):
    if x.sigmoid().max() > 1 or (x * x).min() < 0 or x.clamp(-1, 1).max() > 1 or (x**2).min() < 0:
        return x.cos()
    return x * 2


def layer_dropped(x, p):
    for scale in range(1, 4):
        drawn = torch.rand([])
        if drawn < p - p:
            continue
        x = torch.nn.functional.dropout(x * scale, 0.5)
    return x


def layer_that_may_fail(x, p):
    """Nothing but the range of the draw decides: what may fail is in no side."""
    for scale in range(1, 4):
        drawn = torch.rand([])
        if drawn < p - p:
            continue
        x = torch.linalg.eigvalsh(torch.diag(x.nan_to_num() + 3)) * scale
    return x


# --- not decided -------------------------------------------------------------------------------------------------------


def rewritten(x, p):
    drawn = torch.rand([])
    drawn.sub_(1)
    return x + 1 if drawn < 0 else x.cos().expand(2, 3)


def rewritten_through_a_view(x, p):
    drawn = torch.rand(3)
    drawn[1:].mul_(-4)
    return x + 1 if (drawn < 0).any() else x.cos().expand(2, 3)


def of_an_input(x, p):
    x.uniform_(0, 1)
    return x + 1 if (x < 0).any() else x.cos().expand(2, 3)


def not_a_number(x, p):
    drawn = torch.rand([]) * x.max()
    if drawn.sigmoid() >= 0:
        return x * 2
    return x.cos().expand(2, 3)


def of_nothing(x, p):
    if not (torch.rand(0) >= 0).any():
        return x * 2
    return x.cos().expand(2, 3)


def not_of_a_number(x, p):
    drawn = torch.rand([]) * 0.5 + 0.25
    if torch.logical_not(drawn) | (x.sum() > 100):
        return x * 2
    return x.cos().expand(2, 3)


def with_a_chance(x, p):
    if torch.rand([]) < p:
        return x * 2
    return x.cos().expand(2, 3)


# --- numbers that Python draws -----------------------------------------------------------------------------------------


def drawn_by_python(x, p):
    drawn = random.uniform(0, 1)
    if x.dim() == 1 and (drawn < 0.0):
        return x.cos()
    return x * 2


def drawn_one_after_the_other(x, p):
    for _ in range(3):
        if random.randint(2, 4) < 2:
            x = x.cos()
        if random.uniform(-3, 2) > 2.5:
            return x
    return x * 2


def drawn_with_a_chance(x, p):
    drawn = random.uniform(0, 1)
    if drawn < p:
        return x.cos()
    return x * 2


def drawn_from_another(x, p):
    if random.Random(3).uniform(0, 1) < 0:
        return x.cos()
    return x * 2
