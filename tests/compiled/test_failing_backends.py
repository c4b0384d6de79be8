"""Backends that fail, whatever they are given, or on what only a mended graph has: how often each is tried."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

import graphmend_hook

X, T = torch.arange(6.0) + 1, torch.tensor([2, 1])


def branches(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x - 1


def guards(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    if x.sum() > 100:
        raise ValueError("too large")
    return x + 1


def prints(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("here")
    return y + 1


def reads_a_number(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return torch.zeros(t.sum().item()) + 1


def reads_numbers(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    first, second = t.tolist()
    return x[:first].sum() + x[second:].sum()


def decides_on_a_number(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(t.sum().item())
    return y + 1 if y.shape[0] > 2 else y


CASES = [branches, guards, prints, reads_a_number, reads_numbers, decides_on_a_number]


def _tries(case: Callable[..., Any], fails: Callable[[torch.fx.GraphModule], bool], text: str) -> list[int]:
    """How often a backend that fails on such graphs is tried, in each of three calls."""
    tries: list[int] = []

    def failing(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        tries[-1] += 1
        if fails(graph):
            raise RuntimeError(text)
        return graph.forward

    compiled = torch.compile(graphmend_hook.mend(case), backend=failing)
    for _ in range(3):
        tries.append(0)
        with contextlib.suppress(BackendCompilerFailed):
            compiled(X, T)
    return tries


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_one_that_always_fails_is_tried_once_more_and_then_never_again(case: Callable[..., Any]) -> None:
    assert _tries(case, lambda graph: True, f"no compiler for {case.__name__}") == [2, 1, 1]


def test_one_that_fails_on_joined_graphs_gets_the_parts_each_time() -> None:
    """Also after it has failed on a part, if it has compiled something since."""
    graphs = [_tries(prints, lambda graph: len(graph.graph.nodes) > 3, "too many operations") for _ in range(2)]
    assert graphs == [[3, 0, 0], [3, 0, 0]]


def test_one_that_works_again_is_tried_in_all_ways_again() -> None:
    broken = _tries(prints, lambda graph: True, "no compiler yet")
    torch._dynamo.reset()
    torch.compile(torch.nn.ReLU(), backend="eager")(X)
    torch._dynamo.reset()
    assert (broken, _tries(prints, lambda graph: len(graph.graph.nodes) > 3, "no compiler yet")) == (
        [2, 1, 1],
        [3, 0, 0],
    )


GIVING = {
    "itself": lambda graph, _: graph,
    "a copy": lambda graph, _: copy.deepcopy(graph),
    "a function": lambda graph, _: functools.partial(graph),
}


def picks(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    if t.sum() > 5:
        raise ValueError("too large")
    return x[t]


@pytest.mark.parametrize("giving", GIVING)
def test_a_graph_whose_frame_is_run_again_prints_nothing(giving: str, capfd: pytest.CaptureFixture[str]) -> None:
    """H: a module of `torch.fx` prints how it has failed, whoever catches that."""
    compiled = torch.compile(graphmend_hook.mend(picks), backend=GIVING[giving])
    assert compiled(X, T).tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="too large"):
        compiled(X, torch.tensor([9, 1]))
    assert capfd.readouterr().err == ""


def test_a_graph_that_nobody_runs_again_says_how_it_failed(capfd: pytest.CaptureFixture[str]) -> None:
    compiled = torch.compile(lambda x, t: x[t] + 1, backend=lambda graph, _: graph)
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([9]))
    assert "Call using an FX-traced Module" in capfd.readouterr().err
