"""Progress bars around what is traced: they show behind the graph what they show in eager; what else one does is left."""

from __future__ import annotations

import contextlib
import io
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, both

pytest.importorskip("tqdm")
PLAIN, MENDED = both("progress_cases")
BACKENDS = ["eager", "aot_eager", "inductor"]


def seen(module: ModuleType, name: str, backend: Any) -> list[tuple[object, ...]]:
    """What each call gives, and shows, and what the module has then."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made, found = module.made(name)(), []
    call = made if backend is None else torch.compile(made, backend=backend)
    for number in range(5):
        x = torch.randn(2, 4) + (number - 2)
        if number == 3 and name == "raises":
            x = x * float("inf")
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            try:
                value = call(x)
            except (ValueError, KeyError) as error:
                value = repr(error)
        found.append((flat(value), shown.getvalue(), [*made.kinds], made.bar))
    return found


def flat(value: object) -> object:
    if isinstance(value, tuple):
        return [*map(flat, value)]
    return [round(each, 4) for each in value.flatten().tolist()] if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PLAIN.CASES)
def test_a_bar_shows_in_one_graph_what_it_shows_in_eager(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert seen(MENDED, name, counting) == seen(PLAIN, name, None)
    assert counting.graphs == 1
    assert counting.runs == 5


@pytest.mark.parametrize("name", PLAIN.LEFT)
def test_a_bar_that_does_more_than_show_is_left_as_it_was_written(name: str) -> None:
    counting, stock = Counting("aot_eager"), Counting("aot_eager")
    assert seen(MENDED, name, counting) == seen(PLAIN, name, None)
    seen(PLAIN, name, stock)
    assert (counting.graphs, counting.runs) == (stock.graphs, stock.runs)


def test_bars_close_themselves_where_the_graph_is_done() -> None:
    from tqdm import tqdm

    alive = len(tqdm._instances)
    seen(MENDED, "left_early", "eager")
    assert len(tqdm._instances) == alive
