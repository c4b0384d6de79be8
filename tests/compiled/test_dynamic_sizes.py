"""A size that the user marks as dynamic stays dynamic: what is tried and given up leaves no guard on it."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Iterator
from typing import Any

import dynamic_size_cases
import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("dynamic_size_cases")
NAMES = [
    name for name, case in vars(dynamic_size_cases).items() if inspect.isfunction(case) and not name.startswith("_")
]
OFTEN = ("dynamic", "unbacked", "all")  # marks that are tried with each of them
ONE_GRAPH = ("clamps", "divides_by_the_size", "raises_with_the_shape")  # nothing there depends on the other's size


def _mark_unbacked(x: torch.Tensor) -> None:
    torch._dynamo.decorators.mark_unbacked(x, 0)


MARKS: dict[str, Callable[[torch.Tensor], None]] = {
    "dynamic": lambda x: torch._dynamo.mark_dynamic(x, 0),
    "with limits": lambda x: torch._dynamo.mark_dynamic(x, 0, min=2, max=64),
    "perhaps": lambda x: torch._dynamo.maybe_mark_dynamic(x, 0),
    "unbacked": _mark_unbacked,
    "all": lambda x: None,
}


def _given() -> Iterator[dynamic_size_cases.Given]:
    for number, size in enumerate((6, 6, 6, 7, 9)):
        generator = torch.Generator().manual_seed(number)
        x, b = (torch.rand(size, generator=generator) * 4 for _ in range(2))
        yield x, torch.full((3,), (-1.0, 1.0)[number % 2]), b


def _outcome(call: Callable[..., Any], given: dynamic_size_cases.Given) -> Any:
    """What it gives and prints, or the type of its exception."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            return call(*given).tolist(), said.getvalue()
        except RuntimeError as error:
            return type(error).__name__


def _calls(module: Any, name: str, mark: str) -> tuple[list[Any], int, int]:
    """What the calls give; how many graphs are compiled, and how many the last call runs."""
    torch._dynamo.reset()
    counting = Counting("eager")
    compiled = torch.compile(getattr(module, name), backend=counting, dynamic=True if mark == "all" else None)
    found = []
    for given in _given():
        MARKS[mark](given[0])
        counting.runs = 0
        found.append(_outcome(compiled, given))
    return found, counting.graphs, counting.runs


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        pytest.param(name, mark, marks=() if mark == "dynamic" else pytest.mark.slow)
        for name in NAMES
        for mark in MARKS
        if mark in OFTEN or name.endswith(("side", "both"))
    ],
)
def test_never_worse_than_without_us(name: str, mark: str) -> None:
    stock, compiled, runs = _calls(PLAIN, name, mark)
    found, compiled_here, runs_here = _calls(MENDED, name, mark)
    assert found == stock
    assert compiled_here <= compiled
    assert min(1, runs) <= runs_here <= runs


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark != "unbacked"])
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_what_does_not_depend_on_the_size_is_one_graph(name: str, mark: str) -> None:
    _, compiled, runs = _calls(MENDED, name, mark)
    assert (compiled, runs) == (1, 1)
