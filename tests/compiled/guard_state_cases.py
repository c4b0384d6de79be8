"""What has been done when a guard fails, and what it is decided on.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import torch
from expectations import DOWN, GUARDED, INDICES, SIZES, UP, Expectation, ids, register, t

logger = logging.getLogger("guard_state_cases")
EXPECT: dict[str, Expectation] = {}
case = register(EXPECT, inputs=GUARDED, raises=True, graphs=1)


# --- H17: what the guard protects ------------------------------------------------------------------------------------


@case(inputs=INDICES, inductor=True)
def h17_an_index(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if index.max() >= x.shape[0]:
        raise IndexError(f"an index is not below {x.shape[0]}")
    return x[index] + 1


@case(inputs=INDICES)
def h17_an_embedding(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    assert index.max() < x.shape[0], f"index out of {x.shape[0]}"
    return torch.nn.functional.embedding(index, x.unsqueeze(1)) + 1


@case(
    inputs=((ids(6, 6), ids(2, 3)), (ids(6, 6), ids(2, 0))),
    # A kernel of Inductor's in torch 2.12 ends the process where it divides by zero.
    declined="GM101-T11" if torch.__version__ < "2.13" else "",
    inductor=True,
)
def h17_a_division(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if (y == 0).any():
        raise ZeroDivisionError("by zero")
    return x // y


@case(inputs=((UP, t(1.0, 2.0)), (UP, t(1.0)), (UP, t(1.0, 2.0))), inductor=True, graphs=2)
def h17_a_masked_scatter(x: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    mask = x > 1
    if x[mask].numel() != features.numel():
        raise ValueError(f"{features.shape} features do not match")
    return x.masked_scatter(mask, features) + 1


@case(inputs=((UP, ids(0, 2)), (UP, ids(0, -9)), (UP, ids(0, 7))))
def h17_the_guard_passes_but_the_index_fails(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if index.max() >= x.shape[0]:
        raise ValueError("out of bounds")
    return x[index] + 1


# --- H18: logs around a guard ----------------------------------------------------------------------------------------


@case(inputs=SIZES, inductor=True)
def h18_logs_before_the_guard_and_after_it(x: torch.Tensor) -> torch.Tensor:
    logger.warning("before")
    if x.sum() < 0:
        raise ValueError("negative")
    print("between")
    if x.max() > 50:
        raise ValueError("large")
    logger.warning("after")
    return x + 1


# --- H18, H60: the state when a guard fails --------------------------------------------------------------------------


class Counted(torch.nn.Module):
    """Has attributes of all kinds; those that count are not asked for, so that no call is compiled anew."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = [1]
        self.named = {"last": None}
        self.text = ""
        self.register_buffer("total", torch.zeros(3))

    def count(self, x: torch.Tensor, name: str) -> None:
        self.seen[0] = name
        self.named["last"] = name
        self.text = name
        self.kept = x


class h18_stores_before_and_behind(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count(x, "before")
        if x.sum() < 0:
            raise ValueError("negative", self.text)
        self.count(x + 1, "between")
        assert x.max() < 50, self.text
        self.count(x + 2, "behind")
        return x + 1


# The first of two graphs is that of a module that has no text yet.
case(inputs=SIZES, inductor=True, graphs=2)(h18_stores_before_and_behind)


class h18_writes_before_and_behind(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.detach()
        if x.sum() < 0:
            raise ValueError("negative")
        self.count(x, "between")
        self.total.mul_(2)
        if x.max() > 50:
            raise KeyError("large")
        self.total = self.total + 1
        return x + self.total


case(inputs=SIZES, inductor=True, graphs=2)(h18_writes_before_and_behind)


class h18_statistics(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.isnan().any():
            raise ValueError("not a number")
        self.text = "behind"
        return self.norm(torch.stack([x, x + 1]))


case(inputs=((UP,), (t(1.0, float("nan"), 2.0),), (DOWN,)), inductor=True)(h18_statistics)


@case(inputs=SIZES)
def h18_draws(x: torch.Tensor) -> torch.Tensor:
    x = x + torch.rand(3)
    if x.sum() < 0:
        raise ValueError("negative", torch.rand(2).shape)
    x = torch.nn.functional.dropout(x * torch.randn(3))
    if x.max() > 50:
        raise ValueError("large")
    return x + torch.randint(9, (3,))


@case(inputs=SIZES)
def h18_draws_of_python(x: torch.Tensor) -> torch.Tensor:
    scale = random.uniform(1, 2)
    if x.sum() < 0:
        raise ValueError("negative")
    return x * scale + random.randint(1, 9)


class h18_in_submodules(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = h18_stores_before_and_behind(), h18_stores_before_and_behind()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.text = "outside"
        x = self.first(x)
        logger.warning("between")
        return self.second(x - 4) + torch.rand(3)


case(inputs=(*SIZES, (ids(4, 1, 1).float(),)), graphs=2)(h18_in_submodules)


class h18_under_modes(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if x.sum() < 0:
                raise ValueError("negative")
            self.total.add_(1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.total @ self.total
            if x.max() > 50:
                raise ValueError("large")
            self.text = "behind"
        return x + y


case(inputs=SIZES)(h18_under_modes)


class h18_in_a_finally(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            self.text = "behind"
        finally:
            self.seen[0] = "finally"
        return x + 1


case()(h18_in_a_finally)


# --- sides that do more than raise -----------------------------------------------------------------------------------


@case()
def s_statements_before_it_raises(x: torch.Tensor) -> torch.Tensor:
    negative = x < 0
    if negative.all():
        rows = torch.nonzero(negative).flatten().tolist()
        for row in rows[1:]:
            rows[0] += row
        raise ValueError(f"negative rows {rows}")
    return x + 1


@case(inputs=SIZES)
def s_one_of_two_exceptions(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0 or x.max() > 50:
        if x.max().item() > 50:
            x = x * 2
            raise KeyError("large", x.max().item())
        raise ValueError("negative")
    return x + 1


class s_all_but_one_side_raises(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.text = "before"
        if x.sum() > 0:
            x = self.layer(x)
            self.text = "behind"
        else:
            self.count(x, "failed")
            raise ValueError("negative", self.seen)
        return x + torch.rand(3)


case()(s_all_but_one_side_raises)


def describe(x: torch.Tensor) -> str:
    return f"{x.shape[0]} numbers, the least {x.min().item()}"


@case()
def s_a_message_made_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(describe(x))
    assert x.max() < 50, describe(x)
    return x + 1


@case()
def s_a_text_of_tensors_under_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        if x.sum() < 0:
            raise ValueError(f"the least is {x.min()}")
    return x + 1


# --- what is decided is decided where it stands ------------------------------------------------------------------------

LARGE = ((t(10.0, 20.0, 30.0),), (t(-1.0, 20.0, 30.0),), (t(1.0, 2.0, 3.0),))


@case(inputs=LARGE, inductor=True)
def h18_a_condition_that_is_written_later(x: torch.Tensor) -> torch.Tensor:
    found = (x < 0).any()
    if found:
        raise ValueError("negative")
    found |= (x > 10).any()
    if found:
        raise KeyError("large")
    return x + 1


@case(inputs=((t(1.0, 2.0, 3.0),), (torch.ones(3),)), raises=False)
def h18_a_number_that_is_written_later(x: torch.Tensor) -> torch.Tensor:
    count = (x > 0).sum()
    number = count.item()
    count += 10
    if number > 5:
        raise ValueError("many", number)
    return x + count


@case(inputs=((UP, ids(0, 2)), (UP, ids(0, 2))), raises=False)
def h18_a_flag_that_is_set_after_it_was_looked_at(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    started = (index < 0).any()
    if started.reshape(()):
        raise ValueError("again")
    started.fill_(True)
    return x + started


HALVES = ((t(1.0, 2.0, 3.0, dtype=torch.float16),), (t(-200.0, -200.0, -200.0, dtype=torch.float16),))


@case(inputs=HALVES, inductor=True)
def half_precision_written_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(100)
    if (y > 50).any():
        raise ValueError("large")
    return y


@case(inputs=HALVES)
def half_precision_copied_and_written_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x.float() * 1
    y.add_(100)
    if y.max() > 50:
        raise ValueError("large")
    return y


@case(inputs=HALVES, raises=False)
def half_precision_cut_off_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.clamp_(max=1)
    if (y > 3).any():
        raise ValueError("large")
    return y


class Normed(torch.nn.Module):
    """Between half precision and the decision stands a module that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x.half().float()[None].expand(4, 3))
        if torch.isnan(y).any():
            raise ValueError("nan")
        return y


class Large(Counted):
    """H60: writes to so much memory that no copy is made of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("large", torch.zeros(1 << 19))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        self.count(x, "behind")
        self.large.add_(1)
        return x + 1


class SetsBack(torch.nn.Module):
    """As `StoresAround`, but what is stored before the guard is set back before it."""

    def __init__(self) -> None:
        super().__init__()
        self.mode, self.done = "usual", False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mode = "inside"
        y = x * 3
        self.mode = "usual"
        if y.sum() < 0:
            raise ValueError("negative")
        self.done = True
        return x.mul_(2)


class StoresAround(torch.nn.Module):
    """H60: stores before the guard and behind it, where the graph writes to a part of an autograd graph."""

    step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step = 1
        if x.sum() < 0:
            raise ValueError("negative")
        self.step = 2
        return x.mul_(2)


class Filled:
    """H57: a guard fails in the first calls."""

    def __init__(self) -> None:
        self.filled, self.few = torch.tensor(0), {"at least": 2}

    def simply(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if self.filled < self.few["at least"]:
            raise RuntimeError("few")
        return y[: self.few["at least"]]

    def in_a_helper(self, x: torch.Tensor) -> torch.Tensor:
        self._check()
        return x * 2

    def _check(self) -> None:
        if not self.filled >= 2:
            count = int(self.filled)
            raise RuntimeError(f"few: {count}")

    def of_a_number(self, x: torch.Tensor) -> torch.Tensor:
        if self.filled.item() > 1:
            return x * 2
        raise RuntimeError("few")

    def by_no_name(self, x: torch.Tensor) -> torch.Tensor:
        """Nothing in the text says that it is a tensor, but what is known of it while it is traced."""
        y = x * 2
        limit = self.few["at least"]
        if vars(self)["filled"] < limit:
            raise RuntimeError("few")
        return y


class Stateful(torch.nn.Module):
    """H18: state is written before the guard and after it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.before, self.after = 0, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.before += 1
        x.add_(1)
        if x.sum() < 1:
            raise ValueError("negative")
        self.after += 1
        x.add_(1)
        return x + 1
