"""``float(t)`` and ``int(t)`` of tensors of whole numbers: as in eager, and mostly one graph."""

from __future__ import annotations

import pytest
from module_runs import CALLS, seen
from observing import Counting, both

PLAIN, MENDED = both("called_number_cases")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [*PLAIN.ONE_GRAPH])
def test_a_number_that_is_read_by_a_call_is_in_one_graph(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert seen(MENDED.ONE_GRAPH[name], counting) == seen(PLAIN.ONE_GRAPH[name], None)
    assert (counting.graphs, counting.runs) == (1, CALLS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*PLAIN.OTHERS])
def test_what_else_is_done_with_it_is_as_in_eager(name: str, backend: str) -> None:
    expected = seen(PLAIN.OTHERS[name], None)
    assert seen(MENDED.OTHERS[name], None) == expected
    assert seen(MENDED.OTHERS[name], Counting(backend)) == expected
