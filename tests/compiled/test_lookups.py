"""A side may look up, and write, what is at an index, if each index is one that is there whatever the data is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from observing import Counting, both

from graphmend_hook.engine.facts import places

PLAIN, MENDED = both("lookup_cases")
NAMES = [name for name, value in vars(PLAIN).items() if getattr(value, "__module__", "") == PLAIN.__name__]
NAMES.remove("finds_places")


def seen(function: Any, call: int) -> Any:
    """What it gives, the gradient, and the state of the random stream."""
    torch.manual_seed(call)
    x = (torch.randn(4, 3) + call % 3 - 1).requires_grad_()
    given = function(x)
    (gradient,) = torch.autograd.grad(given.sum(), x, allow_unused=True) if given.requires_grad else (None,)
    return given.tolist(), gradient if gradient is None else gradient.tolist(), torch.get_rng_state().tolist()


def cases() -> Iterator[Any]:
    for name in NAMES:
        drawing = name in ("returns_early_for_a_choice", "mixes_rows")  # numbers that Inductor draws are its own
        for backend in ("eager", "aot_eager", *["inductor"] * (not drawing)):
            yield pytest.param(name, backend, id=f"{name}-{backend}")


@pytest.mark.parametrize(("name", "backend"), list(cases()))
def test_a_side_reads_and_writes_as_in_eager(name: str, backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(getattr(MENDED, name), backend=(counting := Counting(backend)))
    for call in range(8):
        expected, found = seen(getattr(PLAIN, name), call), seen(compiled, call)
        torch.testing.assert_close(found, expected)
    assert (counting.graphs, counting.runs) == (1, 8)


def test_places_are_between_the_bounds_that_are_known() -> None:
    found: list[torch.fx.GraphModule] = []
    torch._dynamo.reset()
    x = torch.randn(4, 3)
    torch.compile(PLAIN.finds_places, backend=lambda module, _: found.append(module) or module)(x)  # type: ignore[func-returns-value]
    odd = torch.tensor([[math.nan, math.inf, -math.inf], [0.0, -0.0, 0.0], [math.nan] * 3, [1.0, 1.0, 2.0]])
    for given in (x, odd, torch.zeros(4, 3), *torch.randn(40, 4, 3)):
        measured = _measured(found[0], given)
        assert len(measured) == len(PLAIN.finds_places(given))
        for (low, high), values in measured:
            assert low <= values.min() and values.max() <= high


def _measured(module: torch.fx.GraphModule, given: torch.Tensor) -> list[tuple[tuple[int, int], torch.Tensor]]:
    """The bounds of each node that has some, with what it gives."""
    measured = []

    class Measuring(torch.fx.Interpreter):
        def run_node(self, node: torch.fx.Node) -> Any:
            result = super().run_node(node)
            bounds = places.bounds(node) if node.op.startswith("call") else None
            if bounds is not None:
                measured.append((bounds, result))
            return result

    Measuring(module).run(given)
    return measured
