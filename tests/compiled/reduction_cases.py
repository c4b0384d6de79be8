"""What makes one bool of many elements, chained comparisons, and what Dynamo lacks of Python: see the docstrings."""

from __future__ import annotations

import itertools
import math

import torch

NOTED: list[str] = []


def noted(value, name):
    """A call that shows how often, and in which order, it is made."""
    NOTED.append(name)
    return value


def holds(x, element):
    if element in x:
        x = x * 2
    return x


def holds_not(x, element):
    if element not in x.flatten():
        x = x * 2
    return x + 1


def holds_some(x, element):
    ids = x.long()
    if element in ids and 1 not in ids and ids.sum() > 3:
        x = x * 2
    elif 2 in ids:
        x = x - 1
    return x + 1


def raises_without(ids, token):
    if token not in ids.flatten():
        raise ValueError(f"{token} is missing")
    return ids * 2


def any_holds(x):
    if any(x > 3):
        return x * 2
    return x + 1


def all_hold(x):
    total = x.sum()
    if all(x.flatten()) and total > 0:
        x = x * 2
    return x + 1


def none_holds(x):
    if not any(x.isnan()):
        x = x * 2
    return x + 1


def any_of_what_is_given(x, items):
    if any(items):
        return x * 2
    return x + 1


def any_of_its_own(x):
    def any(items):
        return items.sum() > 5

    if any(x > 3):
        return x * 2
    return x + 1


def is_near(x, y):
    if torch.allclose(x, y):
        return x * 2
    return x + 1


def is_nearer(x, y, rtol, equal_nan):
    if not torch.allclose(x, y, rtol, atol=1e-3, equal_nan=equal_nan):
        x = x * 2
    return x + 1


def raises_far(x, y):
    if not torch.allclose(x, y, atol=0.5):
        raise ValueError("far")
    return x - y


def chain(x):
    if 0 < x.sum() < 5:
        x = x * 2
    return x + 1


def long_chain(x):
    if 0 < x.sum() < x.max() <= x.abs().max() < 100:
        x = x * 2
    return x + 1


def chain_of_calls(x, low, high):
    """Each is called once, in Python's order, and what is behind a comparison that fails is not."""
    if noted(low, "low") < noted(x.shape[0], "middle") < noted(high, "high"):
        x = x * 2
    return x + 1


def chain_of_tensor_calls(x, low, high):
    if noted(low, "low") < x.sum() < noted(high, "high"):
        x = x * 2
    return x + 1


def raises_out_of_range(x):
    if not -5 <= x.min() <= x.max() <= 5:
        raise ValueError(f"{x.min()} to {x.max()}")
    return x * 2


def asserts_a_chain(x):
    assert 0 <= x.min() <= 1, f"below: {x.min()}"
    return x * 2


def chain_in_a_side(x):
    if x.sum() > 0:
        if 1 < x.max() < 3:
            x = x * 2
        x = x + 1
    return x + 1


def chain_in_a_closure(x):
    def inner(y):
        if 0 < y.sum() < x.sum() + 1:
            y = y * 2
        return y

    return inner(x) + 1


def hot(ids):
    return torch.nn.functional.one_hot(ids).float() * 2


def hot_written_out(ids):
    return torch.nn.functional.one_hot(ids, num_classes=-1).sum(-1)


def hot_of_a_number(ids):
    return torch.nn.functional.one_hot(ids, 9) * 2


def repeats(x, counts):
    return x.repeat_interleave(counts, dim=0) * 2


def repeats_all(x, counts):
    return torch.repeat_interleave(x, counts).sum() + x


def places(counts):
    return torch.repeat_interleave(counts) * 2


def power(x, y):
    return pow(x, y) + 1


def power_of_its_own(x, y):
    def pow(base, exponent):
        return base * exponent

    return pow(x, y) + 1


def power_in_a_ring(x, y):
    return x * pow(3, y, 5)


def scales(x, **factors):
    for name, factor in sorted(factors.items()):
        x = x * factor + len(name)
    return x


def sorted_factors(x):
    return scales(x, b=x, a=x + 1)


def sorted_items(x, mapping):
    total = x
    for key, value in sorted(mapping.items()):
        total = total * value + len(str(key))
    return total


def selects_what_a_transform_made(x, order):
    """transformers makes masks under vmap, and a break at none of these statements would keep them."""
    mask = torch.vmap(lambda row: row[order] > 0)(x)
    return x[order // 1] * 2 + mask.sum() * 0


def scores(x, y):
    """torchmetrics: masks without dimensions."""
    left, right = x.sum(), y.sum()
    some, other = left != 0, right != 0
    both = some & other
    found = torch.ones_like(left)
    found[both] = 1 - left[both] / right[both]
    found[some & ~other] = 0.0
    return found


def selects_all(x):
    found = x[x.sum() > 0]
    return found.sum(0) + x


def writes_all(x, y):
    x = x.clone()
    mask = y.sum() > 0
    x[mask] = y
    mask = ~mask
    x[mask] = x[mask] - 1
    return x


def writes_in_order(x, mask):
    """The value comes first, then what is written to, then where."""
    parts = [x.clone()]
    noted(parts, "owner")[0][noted(mask, "mask")] = noted(5.0, "value")
    return parts[0]


def returns_from_a_branch(x, flag):
    """torchmetrics: what follows the early return stands outside of the branch that it is in."""
    if flag:
        y = x * 3
        if y.sum() > 5:
            return y - 1
        y = y + 2
    elif x.sum() == 0:
        return x + 9
    else:
        y = x
    y = y * 2
    return y / x.abs().clamp(1)


def returns_deeper(x, n):
    match n:
        case 1:
            if n < 5:
                x = x + 0.5
                if x.sum() > 3:
                    return x * 3
            x = x + 1
    return x * 2


def is_false_whatever_it_holds(x, n):
    """The sides read what is bound only where they are taken."""
    if x.numel() == 4 and n > 1:
        part = x[0]
    if x.sum() > 0 and n > 1:
        x = x + part
        NOTED.append("taken")
    if n > 1 or x.sum() > 0:
        NOTED.append("either")
    return x * 2


def fails_before_it_is_false(x, n):
    if x > 0 and n > 1:
        NOTED.append("taken")
    return x * 2


def erodes(x, steps):
    """kornia: each pass makes its own tensor before it writes to it."""
    out, bound = torch.zeros_like(x), x
    for step in range(steps):
        eroded = bound - 0.5
        eroded[eroded < 0] = 0
        if (eroded > 1).any():
            eroded = torch.where(eroded > 1, eroded - 1, eroded)
        out = out + eroded * step
        bound = eroded
    return out


def erodes_what_was(x, steps):
    """Here the write is to what the pass before has selected."""
    eroded = x.clone()
    out = torch.zeros_like(x)
    for step in range(steps):
        eroded[eroded < 0] = 0
        if (eroded > 1).any():
            eroded = eroded - 1
        out = out + eroded * step
    return out


def is_valid(x, least=0):
    """kornia: what a check gives is dropped."""
    if (x < least).any():
        return False
    if x.sum() > 1e6:
        return None
    return True


def drops_what_it_gives(x):
    is_valid(x)
    is_valid(x, -1)
    return x * 2


def uses_what_it_gives(x):
    return x * 2 if is_valid(x) else x - 1


def keeps_what_it_gives(x):
    found = is_valid(x)
    NOTED.append(str(found))
    return x * 2


def finds_the_first(x):
    """`any` drops its own result, and stops at the first truth."""
    found = map(is_noted, [x - 9, x, x + 1])
    any(found)
    return x * 2


def is_noted(x):
    noted(None, "asked")
    if (x < 0).any():  # noqa: SIM103
        return False
    return True


class Checks:
    def __call__(self, x):
        if (x < 0).any():
            return 1
        return 2


check = Checks()


def drops_what_a_method_gives(x):
    check(x)
    return x * 2


def warns_and_drops(x):
    """What has an effect has it."""
    is_noted(x)
    raises_if_low(x)
    return x * 2


def raises_if_low(x):
    if (x < -5).any():
        raise ValueError("low")
    if (x < 0).any():
        return 1
    return 2


def sorts_by(x, keys):
    """What our own function calls is no part of the function that calls it."""
    counted(x, keys)
    return x * 2


def counted(x, keys):
    groups = [key for key, _ in itertools.groupby(keys.tolist(), lambda number: noted(number // 2, "key"))]
    NOTED.append(str(groups))
    if (x < 0).any():
        return groups
    return None


def keeps_a_nonlocal(x):
    """The side that returns also binds a name of another function."""
    kept = x

    def step(y):
        nonlocal kept
        if y.sum() > 5:
            return y + 1
        kept = y * 3
        return y * 2

    found = step(x)
    return found + kept


def keeps_what_a_lambda_sees(x):
    seen = []

    def step(y):
        seen.append(lambda: y)
        if x.exp().sum() > 9:
            y = y * 2
            return y
        return y + 1

    found = step(x)
    return found + seen[0]()


def hot_as_laid_out(ids):
    found = torch.nn.functional.one_hot(ids.reshape(2, 2).t())
    again = torch.nn.functional.one_hot(ids[:, None].expand(4, 3))
    return found.sum() + again * 1


def rounds_down(x, number):
    return x * 2 + math.floor(torch.tensor(number)) % 1000


def counts_all(x):
    return x * math.prod(torch.tensor([2, 3]))


def holds_in_a_side(x, element):
    y = x + 1
    if x.sum() > 0:
        if element not in x:
            y = y * 2
        y = y + 1
    return y


def fails_behind_an_effect(x, value):
    mask = x.sum() > 0
    NOTED.append("before")
    x = x.clone()
    x[mask] = value
    return x


def raises_what_a_lambda_sees(x):
    y = x
    seen = []
    seen.append(lambda: y)

    def step(z):
        nonlocal y
        if z.sum() > 3:
            y = x * 2
            raise ValueError("far")
        return z + 1

    try:
        z = step(x)
    except ValueError:
        z = x
    return z + seen[0]()


def hot_in_a_try(ids):
    try:
        NOTED.append("before")
        found = torch.nn.functional.one_hot(ids)
        NOTED.append("after")
    except RuntimeError:
        found = ids
    return found * 2


def selects_in_inference_mode(x):
    with torch.inference_mode():
        mask = x.exp().sum() > 1
        found = x[mask]
    return found.clone()


def fills(x, value):
    mask = value.sum() > 0
    x[mask] = value
    return x * 2


def closes_wrongly(x):
    if torch.allclose(x, x, 1e-3, rtol=1e-3):
        return x
    return x * 2


def adds_where(x, ids):
    """higgs_audio_v2: which rows are known, and the gradient asks for them too."""
    mask = ids > 1
    y = x * 2
    y[mask] += x[mask].sin()
    y[~mask] *= 3
    lonely = ids.sum() > 3
    y[lonely] += 1
    return y


def writes_what_a_gradient_needs(x):
    """Without a break AOTAutograd refuses it, though nobody may ask for the gradient."""
    y = x * 1
    kept = y.abs()
    y[y.softmax(-1).sum() > 900] = 0
    return y + kept
