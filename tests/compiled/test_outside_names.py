"""Names of the module, and of functions around, that a compiled function binds: as in eager, and without a guard."""

from __future__ import annotations

import contextlib
import copy
import io
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, both
from torch.utils._pytree import tree_map

PLAIN, MENDED = both("outside_name_cases")


def readable(value: Any) -> Any:
    return tree_map(lambda leaf: leaf.tolist() if isinstance(leaf, torch.Tensor) else repr(leaf), value)


def seen(module: ModuleType, function: Any) -> list[Any]:
    """What each of twelve calls gives, prints, and leaves in the module, as that was when it was imported."""
    torch._dynamo.reset()
    begin = {name: copy.deepcopy(getattr(PLAIN, name)) for name in PLAIN.STATE}
    for name, value in begin.items():
        kept = getattr(module, name)
        if hasattr(kept, "clear"):
            kept.clear()
        else:
            setattr(module, name, value)
    found = []
    for call in range(12):
        x = torch.arange(-2.0, 4.0) * (call % 4) + 1 - call % 3
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            given = readable(function(x))
        left = {name: copy.deepcopy(getattr(module, name)) for name in PLAIN.STATE}
        found.append((given, printed.getvalue(), left))
    return found


def reset() -> None:
    PLAIN.STEP, PLAIN.BAD, PLAIN.TOTAL, PLAIN.BEST, PLAIN.FLAG = 0, 0, 0.0, float("inf"), False
    PLAIN.HISTORY.clear()
    PLAIN.BY_NAME.clear()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PLAIN.NAMES)
def test_one_graph_binds_what_eager_binds(name: str, backend: str) -> None:
    counting = Counting(backend)
    reset()
    found = seen(MENDED, torch.compile(getattr(MENDED, name), backend=counting))
    assert found == seen(PLAIN, getattr(PLAIN, name))
    assert counting.graphs <= 2


@pytest.mark.parametrize("name", PLAIN.EQUAL)
def test_what_others_may_read_is_as_in_eager(name: str) -> None:
    reset()
    found = seen(MENDED, torch.compile(getattr(MENDED, name), backend="eager"))
    assert found == seen(PLAIN, getattr(PLAIN, name))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_names_of_the_function_around(backend: str) -> None:
    counting = Counting(backend)
    reset()
    found = seen(MENDED, torch.compile(MENDED.around(), backend=counting))
    assert found == seen(PLAIN, PLAIN.around())
    assert counting.graphs <= 2
