"""The value of a test that data decides, alone or joined by ``and`` and ``or``: one graph, and the value of eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, assert_alike, begun, both

PLAIN, MENDED = both("joined_test_cases")
CALLS = 9


def found(kind: type, backend: Counting | None) -> list[Any]:
    """What each call gives or raises and leaves, with the gradients and a draw behind it."""
    module, called = begun(kind, backend)
    given: list[Any] = []
    for call in range(CALLS):
        torch.manual_seed(call)
        module.zero_grad(set_to_none=True)
        index = torch.randint(0, 4 + 96 * (call % 2), (2,))
        try:
            result = called(torch.randn(3, 4) * (1 + call % 3), index)
        except IndexError as error:
            given.append(str(error))
            continue
        parts = result if isinstance(result, tuple) else (result,)
        parts[0].sum().backward()
        gradients = [each.grad for each in module.parameters()]
        kinds = [type(part) for part in parts]
        given.append([kinds, parts[0].detach(), *parts[1:], *gradients, module.seen, [*module.notes], torch.rand(1)])
    return given


def check(name: str, backend: Counting) -> None:
    assert_alike(found(getattr(MENDED, name), backend), found(getattr(PLAIN, name), None))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_GRAPH])
def test_one_graph(name: str, backend: str) -> None:
    counting = Counting(backend)
    check(name, counting)
    assert (counting.graphs, counting.runs) == (1, CALLS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.OTHERS])
def test_others_are_as_in_eager(name: str, backend: str) -> None:
    check(name, Counting(backend))


@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_GRAPH])
def test_more_than_one_graph_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    found(getattr(PLAIN, name), counting)
    assert (counting.graphs, counting.runs) != (1, CALLS)
