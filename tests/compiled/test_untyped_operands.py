"""Operands for which nothing speaks but that they might be tensors: one graph where they are, and as written where not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, on
from programs import BACKENDS, Compiled, Programs, outcome

FILE = Programs("untyped_operand_cases")
X = torch.arange(32.0).reshape(8, 4) - 15.5
NUMBER = torch.tensor
SHAPE = {"shape": NUMBER([8, 3])}
# The inputs of calls, of which the first two are one graph.
ONE_GRAPH: dict[str, tuple[tuple[Any, ...], ...]] = {
    "steps": ((X,), (X + 1,)),
    "checks_that_it_increases": ((X,), (X + 1,)),
    "asserts": ((X, X.min(), X.max()), (X + 1, X.max() * 1, X.min() * 1)),
    "raises": ((X, X.min(), X.max()), (X + 1, X.max() * 1, X.min() * 1)),
    "Fills": ((X,), (X + 1,)),
    "reads_an_item": ((X, SHAPE), (X + 1, SHAPE)),
    "rounds": ((X,), (X + 1,)),
    "negated_in_a_call": ((X,), (X + 1,)),
    "some_within": ((X, -1.0, 20.0), (X + 1, -1.0, 20.0), (X + 9, -1.0, 20.0), (-X.abs(), -1.0, 20.0)),
    "on_the_default_device": ((X,), (X + 1,)),
}


@pytest.mark.parametrize(("name", "backend"), on(ONE_GRAPH, ("Fills", "rounds", "some_within")))
def test_one_graph(name: str, backend: str) -> None:
    compiled = Compiled(FILE, name, backend, grad=True)
    calls = ONE_GRAPH[name][: 2 if backend == "inductor" else None]  # whose `min` of nothing gives something
    assert [compiled(*inputs) for inputs in calls][:2] == [1, 1]


@pytest.mark.parametrize("name", sorted(ONE_GRAPH.keys() - {"raises", "asserts"}))
def test_the_case_breaks_without_the_hook(name: str) -> None:
    assert FILE.breaks(name, *ONE_GRAPH[name][0])


def test_a_default_device_that_is_set_is_read_as_it_was_written() -> None:
    assert Compiled(FILE, "on_the_default_device")(X) == 1
    torch.set_default_device("meta")
    try:
        plain, mended = FILE.pair("on_the_default_device")
        assert type(outcome(torch.compile(mended, backend="eager"), X)) is type(outcome(plain, X))
    finally:
        torch.set_default_device(None)
    Compiled(FILE, "on_the_device_of_a_context")(X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_times_that_are_handed_in(backend: str) -> None:
    compiled = Compiled(FILE, "interpolates", backend)
    assert [compiled(NUMBER(t), NUMBER(0.0), NUMBER(1.0), X, X + 1) for t in (0.0, 0.5, 1.0)][0] == 1


def test_a_loop_over_unknown_numbers_is_left_as_it_was_written() -> None:
    edges, compiled, graphs = NUMBER([[0, 1, 1, 3, 4, 0, 6, 7]]), Compiled(FILE, "merges"), []
    counting = Counting("eager")
    stock = torch.compile(FILE.plain.merges, backend=counting, dynamic=False)
    for x in (X, -X, X[torch.randperm(8)]):
        stock(edges, x)
        graphs.append((compiled(edges, x), counting.graphs))
    assert all(ours == theirs for ours, theirs in graphs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_number_that_is_drawn_has_the_range_of_the_draw(backend: str) -> None:
    compiled = Compiled(FILE, "crops", backend)
    assert [compiled(X + number) for number in range(6)] == [1] * 6


@pytest.mark.parametrize("n", [1, 2])
def test_sizes_in_the_head_of_a_statement(n: int) -> None:
    compiled = Compiled(FILE, "Heads", fullgraph=True)
    assert compiled(X, n) == compiled(X + 1, n) == 1
