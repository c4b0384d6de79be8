"""Operations that give as many elements as the data says: one graph, whatever the number."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import on
from programs import BACKENDS, Compiled, Programs

from graphmend_hook.engine.attempt import refusals

FILE = Programs("counted_cases")
X = torch.arange(32.0).reshape(8, 4) - 15.5
NUMBER = torch.tensor
SOME = [X.new_tensor(numbers) for numbers in ([1, 2, 2, 1], [3, 3, 3, 3], [1, 2, 3, 4], [0, -0.0, 0, 1])]


@torch.library.custom_op("graphmend_tests::above", mutates_args=())
def above(x: torch.Tensor, bound: float) -> torch.Tensor:
    return (x > bound).nonzero()[:, 0]


@above.register_fake
def _(x: torch.Tensor, bound: float) -> torch.Tensor:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


@torch.library.custom_op("graphmend_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


ONE_GRAPH: dict[str, tuple[tuple[Any, ...], ...]] = {
    "counts": ((NUMBER([1, 2, 2, 8]), 3), (NUMBER([0, 0, 3, 3]), 3)),
    "counts_weights": ((NUMBER([1, 2, 2, 8]), X[0]), (NUMBER([0, 0, 3, 3]), X[1])),
    "counts_as_many_as_there_are": tuple((X.flatten().long() % number + 9,) for number in (4, 3, 7)),
    "selects_by_an_operator": ((X,), (X + 1,), (-X.abs(),), (X[:, :1].abs() + 1,)),
    "ranks": tuple((numbers,) for numbers in SOME),
    "runs": tuple((numbers,) for numbers in SOME),
}


# Inductor calls bincount as it is.
@pytest.mark.parametrize(("name", "backend"), on(ONE_GRAPH, ("selects_by_an_operator", "ranks", "runs")))
def test_one_graph(name: str, backend: str) -> None:
    compiled, calls = Compiled(FILE, name, backend, grad=True), ONE_GRAPH[name]
    # Of one column, the operator's input has another shape.
    assert [compiled(*inputs) for inputs in calls] == [1] * len(calls) or name == "selects_by_an_operator"


@pytest.mark.parametrize("name", ["counts", "counts_weights", "counts_as_many_as_there_are", "selects_by_an_operator"])
def test_the_case_breaks_without_the_hook(name: str) -> None:
    assert FILE.breaks(name, *ONE_GRAPH[name][0])


def test_a_count_past_the_least_length_fails_as_in_eager() -> None:
    compiled = Compiled(FILE, "counts")
    for numbers in ([1, 2, 2, 8], [1, 12], [1, -1]):
        compiled(NUMBER(numbers), 3)


def test_an_operator_of_a_known_shape_is_asked_for_nothing() -> None:
    assert Compiled(FILE, "calls_an_operator_of_a_known_shape")(X) == 1
    assert not refusals.seen


@pytest.mark.parametrize("backend", BACKENDS)
def test_distinct_elements_with_options_written_out(backend: str) -> None:
    """How many there are is a symbol from the first call on, and no label too many goes unseen."""
    compiled = Compiled(FILE, "knows_the_labels", backend)
    labels = ([0, 1, 1, 0], [1, 0, 0, 0], [0, 2, 1, 1], [1, 1, 1, 1])
    assert [compiled(NUMBER(each)) for each in labels] == [1, 1, 1, 1]
