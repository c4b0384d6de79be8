"""Functions that bind, add to and append to names of the module and of functions around, and what there is of each."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch

STEP, BAD, TOTAL, BEST, FLAG = 0, 0, 0.0, float("inf"), False
HISTORY: list[float] = []
BY_NAME: dict[str, list[float]] = collections.defaultdict(list)


def counts(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    global STEP
    STEP += 1
    return x * 2, STEP


def adds_numbers(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    global TOTAL
    TOTAL += x.mean().item()
    return x * 2, TOTAL


def keeps_the_best(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    global BEST
    value = x.mean().item()
    if value < BEST:
        BEST = value
        print(f"best {value:.3f}")
    return x * 2, BEST


def sets_a_flag_and_counts(x: torch.Tensor) -> tuple[torch.Tensor, bool, int]:
    global FLAG, BAD
    if x.abs().max() > 5:
        FLAG = True
        BAD += 1
    return x * 2, FLAG, BAD


def reads_what_a_side_has_bound(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    global BAD
    if x.sum() > 0:
        BAD = BAD + 2
    return x * BAD, BAD


def appends_a_name(x: torch.Tensor) -> torch.Tensor:
    global BEST
    BEST = min(BEST, x.mean().item())
    HISTORY.append(BEST)
    return x * 2


def appends_under_a_name(x: torch.Tensor) -> torch.Tensor:
    value = x.mean().item()
    BY_NAME["mean"].append(value)
    return x * 2


def appends_to_what_it_is_given(x: torch.Tensor, rows: list[Any] = HISTORY) -> torch.Tensor:
    value = x.mean().item()
    rows.append(value)
    return x * 2


def _tells() -> int:
    return BAD


def is_read_by_a_function_in_the_side(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The function has to see what the side has bound."""
    global BAD
    seen = 0
    if x.sum() > 0:
        BAD = BAD + 1
        seen = _tells()
    return x * 2, seen


def is_bound_for_the_first_time(x: torch.Tensor) -> torch.Tensor:
    """Nobody has bound it before; a read of it would fail."""
    global FIRST
    if x.sum() > 0:
        FIRST = 1  # type: ignore[name-defined]
    return x * 2


def around() -> Callable[[torch.Tensor], Any]:
    """A function that binds names of this one."""
    count, best, seen, bad = 0, None, 0.0, 0

    def inner(x: torch.Tensor) -> Any:
        nonlocal count, best, seen, bad
        count += 1
        value = x.mean().item()
        seen += value
        if best is None or value < best:
            best = value
        if torch.isnan(x).any() or x.abs().max() > 6:
            bad += 1
            print("bad batch", bad, "of", count)
        return x * 2, count, best, seen, bad

    return inner


NAMES = [
    *("counts", "adds_numbers", "keeps_the_best", "sets_a_flag_and_counts"),
    *("appends_a_name", "appends_under_a_name"),
]
EQUAL = [
    "reads_what_a_side_has_bound",
    "appends_to_what_it_is_given",
    "is_read_by_a_function_in_the_side",
    "is_bound_for_the_first_time",
]
STATE = ("STEP", "BAD", "TOTAL", "BEST", "FLAG", "HISTORY", "BY_NAME")
