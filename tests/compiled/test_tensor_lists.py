"""Lists of tensors to which the data decides what is appended, and numbers to which it decides that a tensor is added."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("tensor_list_cases")
# Rows of which class each is comes from their sum: all four, some, one, none of 1 and 2.
ROWS = (
    [0.2, 0.7, 1.2, 1.7, 0.1, 0.6],
    [0.2, 0.7, 1.2, 0.3, 0.1, -0.6],
    [0.7, 0.8, -0.7, 0.6, 0.9, 0.55],
    [0.2, 0.1, 1.7, -1.6, 0.3, 0.4],
    [0.2, 0.1, 0.05, -0.1, 0.3, 0.4],
    [1.2, 1.1, 1.05, -1.1, 1.3, 1.4],
)


def readable(value: Any) -> Any:
    """Of tensors the kind, the shape and the numbers to the digits that Inductor gives, too; of all else the text."""
    if isinstance(value, (tuple, list)):
        return [type(value), *map(readable, value)]
    if isinstance(value, torch.Tensor):
        numbers = value.detach().double().mul(997).round().tolist()
        return str(value.dtype), [*value.shape], value.requires_grad, repr(numbers)  # in which NaN is equal to NaN
    return repr(value)


def seen(function: Callable[..., Any], backend: Counting | None) -> list[Any]:
    """What each call gives, prints and leaves as a gradient, or raises."""
    torch._dynamo.reset()
    called = function if backend is None else torch.compile(function, backend=backend)
    found = []
    for rows in ROWS:
        x = torch.tensor(rows)[:, None].expand(6, 2).mul(torch.tensor([0.25, 0.75])).clone().requires_grad_()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                result = called(x)
                first = result[0] if isinstance(result, tuple) else result
                if isinstance(first, torch.Tensor) and first.requires_grad:
                    first.sum().backward()
                seen = readable(result)
            except (AttributeError, RuntimeError, TypeError, ZeroDivisionError) as error:
                seen = type(error).__name__
        found.append([seen, printed.getvalue(), None if x.grad is None else readable(x.grad)])
    return found


def name_of(function: Callable[..., Any]) -> str:
    return function.__name__


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [*map(name_of, PLAIN.ONE_GRAPH)])
def test_what_the_data_appends_or_adds_is_one_graph(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert seen(getattr(MENDED, name), counting) == seen(getattr(PLAIN, name), None)
    assert (counting.graphs, counting.runs) == (1, len(ROWS))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*map(name_of, PLAIN.OTHERS)])
def test_what_else_is_done_with_them_is_that_of_eager(name: str, backend: str) -> None:
    expected = seen(getattr(PLAIN, name), None)
    assert seen(getattr(MENDED, name), None) == expected
    assert seen(getattr(MENDED, name), Counting(backend)) == expected
