"""Whole numbers that are used as numbers alone are read behind the graph, or decide in it: one graph, as in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both
from torch.utils._pytree import tree_leaves

PLAIN, MENDED = both("alone_number_cases")
# A size is captured where the number has decided before; the example of the first call does not hold for each.
GRAPHS = {"a_size_all_the_same": 4}


def seen(function: Any, call: int) -> tuple[Any, list[float]]:
    """What it gives but for the loss, with its types; the loss, and its gradient."""
    torch.manual_seed(call)
    h, y = torch.randn(4, 3).requires_grad_(), torch.randint(0, 3, (4,)) * int(call % 3 > 0)
    loss, *others = function(h, y)
    (gradient,) = torch.autograd.grad(loss, h, allow_unused=True)
    given = [each.tolist() if isinstance(each, torch.Tensor) else each for each in others]
    found = tree_leaves(given)
    return (found, [*map(type, found)]), [loss.item(), *([] if gradient is None else gradient.flatten().tolist())]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PLAIN.NAMES)
def test_one_graph_gives_what_eager_gives(name: str, backend: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=(counting := Counting(backend)))
    for call in range(10):
        (expected, losses), (given, found) = seen(getattr(PLAIN, name), call), seen(compiled, call)
        assert found == pytest.approx(losses, rel=1e-5 if backend == "inductor" else 1e-6)
        assert given[1] == expected[1]
        assert given[0] == (pytest.approx(expected[0], rel=1e-5) if backend == "inductor" else expected[0])
    assert counting.graphs <= GRAPHS.get(name, 2)
