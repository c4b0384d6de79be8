"""A number of a list of the state, at one that counts calls, is known before the graph: nothing compiles for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, assert_alike, begun, both

PLAIN, MENDED = both("table_number_cases")
CALLS = 10


def found(kind: type, backend: Counting | None) -> list[Any]:
    """What each call gives or raises, and leaves, with the gradients."""
    module, called = begun(kind, backend)
    given: list[Any] = []
    for call in range(CALLS):
        torch.manual_seed(call)
        module.zero_grad(set_to_none=True)
        try:
            result = called(torch.randn(3, 4), call)
        except IndexError as error:
            given.append(str(error))
            continue
        result.sum().backward()
        gradients = [each.grad.clone() for each in module.parameters()]
        numbers = [module.step, module.last, *module.rates, *module.alias]
        given.append([result.detach(), *gradients, torch.tensor(numbers, dtype=torch.float64)])
        getattr(module, "between", lambda call: None)(call)
    return given


def check(name: str, backend: Counting) -> None:
    assert_alike(found(getattr(MENDED, name), backend), found(getattr(PLAIN, name), None))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [each.__name__ for each in (*PLAIN.ONE_GRAPH, *PLAIN.TWO_GRAPHS)])
def test_nothing_is_compiled_for_each_number(name: str, backend: str) -> None:
    counting = Counting(backend)
    check(name, counting)
    most = 1 if name in {each.__name__ for each in PLAIN.ONE_GRAPH} else 2
    assert (counting.graphs, counting.runs) == (most, CALLS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.OTHERS])
def test_others_are_as_in_eager(name: str, backend: str) -> None:
    check(name, Counting(backend))


@pytest.mark.parametrize("name", [each.__name__ for each in (*PLAIN.ONE_GRAPH, *PLAIN.TWO_GRAPHS)])
def test_each_number_is_compiled_for_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    found(getattr(PLAIN, name), counting)
    assert counting.graphs >= CALLS // 2
