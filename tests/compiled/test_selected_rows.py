"""Operations on the rows that a mask selects, in a side that is taken if it selects any."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("selected_row_cases")
NOT_TAKEN = {function.__name__ for function in PLAIN.NOT_TAKEN}
CALLS = 6


def seen(function: Callable[..., torch.Tensor], backend: Counting | None) -> list[tuple[float, torch.Tensor]]:
    """The result and the gradient of each call: some rows are selected, none, all."""
    torch._dynamo.reset()
    called = function if backend is None else torch.compile(function, backend=backend)
    draws, found = torch.Generator().manual_seed(0), list[tuple[float, torch.Tensor]]()
    for number in range(CALLS):
        x = torch.randn(5, 4, generator=draws)
        x[:, :2] = x[:, :2].abs() * (1.0, -1.0)[number % 3 == 1] if number % 3 else x[:, :2]
        x.requires_grad_()
        result = called(x)
        result.backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        found.append((result.item(), x.grad.clone()))
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [function.__name__ for function in PLAIN.ONE_GRAPH])
def test_what_is_done_to_selected_rows_is_one_graph(name: str, backend: str) -> None:
    counting = Counting(backend)
    found, expected = seen(getattr(MENDED, name), counting), seen(getattr(PLAIN, name), None)
    tolerance = 1e-5 if backend == "inductor" else 0
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    assert (counting.graphs, counting.runs) == (1, CALLS)


@pytest.mark.parametrize("name", [*sorted(NOT_TAKEN), *(function.__name__ for function in PLAIN.OTHERS)])
def test_what_else_is_done_to_them_is_as_in_eager(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of a side that is not taken fails in the graph."""
    found, expected = seen(getattr(MENDED, name), Counting("aot_eager")), seen(getattr(PLAIN, name), None)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert "GM0" not in caplog.text or name not in NOT_TAKEN
