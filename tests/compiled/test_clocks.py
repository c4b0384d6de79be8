"""Clocks: one time before the graph and one behind it, in Python's order; nothing is compiled anew for what they show."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("clock_cases")
BACKENDS = ["eager", "aot_eager"]


def compiled(name: str, backend: str) -> tuple[Any, Any, Counting]:
    counting, module = Counting(backend), getattr(MENDED, name)()
    return module, torch.compile(module, backend=counting), counting


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_clock_shows_is_shown_and_kept(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    module, call, counting = compiled("Timed", backend)
    for number in range(1, 5):
        caplog.clear()
        before = time.perf_counter()
        with caplog.at_level(logging.WARNING, "clock_cases"):
            call(torch.ones(2, 3))
        whole = time.perf_counter() - before
        took = module.times[-1]
        assert 0 < took <= whole
        assert module.times[-2] == took, "a graph has one time behind it"
        assert len(module.times) == 2 * number
        assert module.total == pytest.approx(sum(module.times[::2]))
        assert [record.getMessage() for record in caplog.records] == [f"2 took {took:.6f}", f"{1000 * took:.6f} ms"]
    assert (counting.graphs, counting.runs) == (1, 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_readings_are_of_the_call_and_in_order(backend: str) -> None:
    _, call, counting = compiled("Returned", backend)
    for _ in range(3):
        before, before_ns = time.time(), time.monotonic_ns()
        _, seconds, nanoseconds = call(torch.ones(2, 3))
        for found, first, last in (
            (seconds, before, time.time()),
            (nanoseconds, before_ns, time.monotonic_ns()),
        ):
            assert first <= found[0] <= found[1] == found[2] <= last
            assert {*map(type, found)} == {type(first)}
    assert counting.graphs == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reading_that_the_call_before_has_stored_is_not_guarded(backend: str) -> None:
    module, call, counting = compiled("Since", backend)
    for _ in range(6):
        call(torch.ones(2, 3))
    assert counting.graphs == 2  # the first has none
    assert len(module.times) == 5
    assert all(each > 0 for each in module.times)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_time_of_each_layer_is_taken_where_it_passes(backend: str) -> None:
    module, call, _ = compiled("OfEachLayer", backend)
    for _ in range(3):
        call(torch.ones(2, 3))
    assert len(module.times) == 9
    assert all(each > 0 for each in module.times)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_guard_behind_a_clock_raises_before_what_is_stored_behind_it(backend: str) -> None:
    module, call, counting = compiled("Guards", backend)
    call(torch.ones(2, 3))
    assert module.last is not None
    module.last = None
    with pytest.raises(ValueError, match="not a number"):
        call(torch.full((2, 3), torch.nan))
    assert module.last is None
    assert counting.graphs == 1


@pytest.mark.parametrize("name", ["OfEachLayer", "Decides", "Computes"])
def test_a_model_that_asks_for_the_time_while_it_runs_breaks_as_it_does_without_the_hook(name: str) -> None:
    found = []
    for owner in (PLAIN, MENDED):
        torch._dynamo.reset()
        counting, module = Counting("eager"), getattr(owner, name)()
        call = torch.compile(module, backend=counting)
        found.append([(counting.graphs, counting.runs) for _ in range(5) if call(torch.ones(2, 3)) is not None])
        assert not module.slow
    assert found[0] == found[1]


def test_two_graphs_in_a_row_have_readings_of_their_own() -> None:
    _, call, _ = compiled("Returned", "eager")
    found = [reading for _ in range(4) for reading in call(torch.ones(2, 3))[2]]
    assert found == sorted(found)
    assert len({*found[::3]}) == 4
