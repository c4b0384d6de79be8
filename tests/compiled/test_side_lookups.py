"""What a side looks up is looked up at the first place where the side is not taken: nothing fails that eager skips."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, assert_alike, begun, both

PLAIN, MENDED = both("side_lookup_cases")
CALLS = 9
NAMES = [each.__name__ for each in PLAIN.ALL]


def found(kind: type, backend: Counting | None, most: int) -> list[Any]:
    """What each call gives, with the gradients, or that it raises.  most: the greatest place, and one more."""
    module, called = begun(kind, backend)
    given: list[Any] = []
    for call in range(CALLS):
        torch.manual_seed(call)
        module.zero_grad(set_to_none=True)
        places = torch.randint(0, most if call % 3 == 1 else 4, (3, 4))
        try:
            result = called(torch.randn(3, 4), places)
        except (IndexError, RuntimeError):
            given.append("raises")
            continue
        result.sum().backward()
        given.append([result.detach(), *(each.grad for each in module.parameters())])
    return given


@pytest.mark.parametrize("most", [4, 100])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", NAMES)
def test_one_graph_that_looks_where_eager_does(name: str, backend: str, most: int) -> None:
    counting = Counting(backend)
    assert_alike(found(getattr(MENDED, name), counting, most), found(getattr(PLAIN, name), None, most))
    assert (counting.graphs, counting.runs) == (1, CALLS)


def test_places_that_are_not_there_are_looked_at_and_skipped() -> None:
    expected = found(PLAIN.Gathers, None, 100)
    assert {"raises" if each == "raises" else "" for each in expected} == {"raises", ""}
