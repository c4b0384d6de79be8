"""The truth of a tensor that comes in, at a test of which the text says nothing: a guard, one graph for each answer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, begun, both

PLAIN, MENDED = both("open_truth_cases")
STEPS = (0, 1, 2, 3, 4, 4, 5, 7, 6, 8, 9, 2)


def found(kind: type, backend: Counting | None) -> list[Any]:
    """What each call gives, and the gradients."""
    module, called = begun(kind, backend)
    given: list[Any] = []
    for step in STEPS:
        module.zero_grad(set_to_none=True)
        result = called(torch.arange(12.0).reshape(3, 4) - 6 + step, torch.tensor(step))
        parts = [part for part in torch.utils._pytree.tree_leaves(result) if part is not None]
        trained = [part.sum() for part in parts if part.requires_grad]
        if trained:
            sum(trained).backward()
        gradients = [None if each.grad is None else each.grad.tolist() for each in module.parameters()]
        given.append((type(result), [part.tolist() for part in parts], gradients, module.calls.item()))
    return given


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_FOR_EACH])
def test_one_graph_for_each_answer(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert found(getattr(MENDED, name), counting) == found(getattr(PLAIN, name), None)
    assert (counting.graphs, counting.runs) == (2, len(STEPS))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.OF_CONSTANTS])
def test_a_loop_of_as_many_steps_as_constants_say_is_one_graph(name: str, backend: str) -> None:
    counting = Counting(backend)
    for one, other in zip(found(getattr(MENDED, name), counting), found(getattr(PLAIN, name), None), strict=True):
        torch.testing.assert_close(one[1:], other[1:], rtol=1e-5, atol=1e-6)
    assert (counting.graphs, counting.runs) == (1, len(STEPS))


@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.OTHERS])
def test_others_are_as_in_eager(name: str) -> None:
    assert found(getattr(MENDED, name), Counting("eager")) == found(getattr(PLAIN, name), None)


@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_FOR_EACH])
def test_the_test_ends_the_graph_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    found(getattr(PLAIN, name), counting)
    assert (counting.graphs, counting.runs) != (2, len(STEPS))
