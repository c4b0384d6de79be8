"""What stands at numbers that the data decides, ``x[:, k]``, and arrays of numpy that are read: one graph, as in eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("item_cases")


def seen(function: Any, call: int) -> Any:
    """What it gives and the gradient, or what it raises."""
    torch.manual_seed(call)
    x, lengths = torch.randn(4, 8).requires_grad_(), torch.randint(1, 5, (4,))
    try:
        given = function(x, lengths)
    except (IndexError, RuntimeError, ValueError) as error:
        return type(error), str(error)
    (gradient,) = torch.autograd.grad(given.sum(), x, allow_unused=True)
    return given, gradient


def expect_equal(found: Any, expected: Any) -> None:
    if isinstance(expected[0], torch.Tensor):
        torch.testing.assert_close(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [function.__name__ for function in (*PLAIN.PLACES, *PLAIN.ARRAYS)])
def test_one_graph_gives_what_eager_gives(name: str, backend: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=(counting := Counting(backend)))
    for call in range(10):
        expected, found, before = seen(getattr(PLAIN, name), call), seen(compiled, call), counting.graphs
        expect_equal(found, expected)
        assert counting.graphs == before or call < 2
    assert counting.graphs <= 2


def test_what_nothing_would_check_breaks_as_without_the_hook() -> None:
    """Inductor reads beyond the memory of a tensor, where eager says that it is too small."""
    compiled = torch.compile(MENDED.viewed_where_it_may_not_fit)
    for call in range(10):
        expected, found = seen(PLAIN.viewed_where_it_may_not_fit, call), seen(compiled, call)
        expect_equal(found[:1], expected[:1])
