"""Numbers that are read out of tensors, and what is done by them."""

from __future__ import annotations

import itertools
from itertools import groupby

import torch
from programs import TAKEN, of

# --- guards and effects -----------------------------------------------------------------------------------------------


def reads_twice(x):
    return torch.ge(input=x, other=1).item(), torch.ge(input=x, other=10).item()


def case_guards_of_values_differ_by_keyword(C):
    compiled = C(reads_twice)
    return [compiled(torch.tensor(value)) for value in (5, 20, 0)]


# --- groups: an iterator that finds out about a group when it is asked for it ----------------------------------------


def groups_that_are_kept(x):
    return [(k, list(g)) for k, g in [(k, g) for k, g in groupby(x.tolist(), lambda v: v)]]


def groups_that_are_used_up(x):
    grouped = groupby(x.tolist(), lambda v: v)
    return [k for k, _ in grouped], [k for k, _ in grouped]


def groups_until_one(x):
    seen = []
    for key, group in groupby(x.tolist(), lambda v: seen.append(v) or v):
        group = list(group)  # noqa: PLW2901
        if key == 1:
            break
    return seen


def groups_by_a_state(x):
    state, found = [0], []
    for key, group in groupby(x.tolist(), lambda v: v + state[0]):
        group = list(group)  # noqa: PLW2901
        state[0] += 10
        found.append((key, group))
    return found


def groups_read_a_step_later(x):
    last, found = [], []
    for _, group in groupby(x.tolist(), lambda v: v):
        found.append(list(last))
        last = group
    return found


def groups_read_after_the_loop(x):
    for key, group in groupby(x.tolist(), lambda v: v):
        if key == 2:
            continue
        group = list(group)  # noqa: PLW2901
    return list(group)


def groups_of_pairs(x):
    found = []
    for key, group in itertools.groupby(enumerate(x.tolist()), lambda pair: pair[1]):
        if key == 9:
            continue
        group = list(group)  # noqa: PLW2901
        found.append((key, group[0][0], group[-1][0] + 1))
    return found


def case_groups(C):
    return [
        C(function)(torch.tensor([1, 1, 2]))
        for function in (
            *(groups_that_are_kept, groups_that_are_used_up, groups_until_one, groups_by_a_state),
            *(groups_read_a_step_later, groups_read_after_the_loop, groups_of_pairs),
        )
    ]


# --- what torch takes for a number, and for a condition ---------------------------------------------------------------


def counts_up_to(t, x):
    return torch.arange(t)


def fills_with(t, x):
    return torch.full_like(x, t), x.new_full((2,), t)


def spaces(t, x):
    return torch.linspace(0, 1, t)


def views_as(t, x):
    return x.view(t, -1)


def checks(t, x):
    torch._check(t > 1, lambda: "too small")
    return x + 1


def checks_a_name(t, x):
    holds = t > 1
    torch._check(holds)
    return x + 1


def checks_a_number(t, x):
    torch._check(t.item())
    return x + 1


def checks_two(t, x):
    torch._check((t > 1).item() and not (t > 9).any(), lambda: "out of bounds")
    return x + 1


def case_numbers(C):
    found = []
    for function in (counts_up_to, fills_with, spaces, views_as, checks, checks_a_name, checks_a_number, checks_two):
        for number in (torch.tensor(2), torch.tensor([2]), torch.tensor([[2]]), torch.tensor(True), torch.tensor(2.0)):
            torch._dynamo.reset()
            try:
                found.append(C(function)(number, torch.ones(4)))
            except (TypeError, RuntimeError) as error:
                found.append(f"{type(error).__name__} {error}")
    return found


def case_a_mask_among_other_targets(C):
    """One number of another dtype is converted where a mask is written to, wherever the target stands."""

    def writes(x):
        y = torch.zeros(4, 5, dtype=torch.float64)
        y[y > y.mean()], count = x.sum(), 1
        y[y == y.mean()], *rest = x.sum(), count, 2
        return y, rest

    compiled = C(writes)
    return [compiled(of(value)) for value in TAKEN]
