"""``torch.autograd.grad`` in a frame: in the graph, and what it gives is that of eager, and so are gradients of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from observing import Counting, begun, both

PLAIN, MENDED = both("asked_gradient_cases")
CALLS = 4


def found(kind: type, backend: Counting | None, caplog: pytest.LogCaptureFixture) -> list[Any]:
    """What each call gives or raises, with gradients, records and what the module holds."""
    caplog.clear()
    module, called = begun(kind, backend)
    given: list[Any] = []
    for call in range(CALLS):
        torch.manual_seed(call)
        module.zero_grad(set_to_none=True)
        try:
            results = called(torch.randn(4, 4) * (1 + call % 3))
        except RuntimeError as error:
            given.append(str(error).split(".")[0])
            continue
        results = results if isinstance(results, tuple) else (results,)
        trained = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        if trained:
            sum(trained).backward()
        gradients = [None if each.grad is None else each.grad.clone() for each in module.parameters()]
        held = [*map(torch.clone, module.buffers()), *(each.detach().clone() for each in module.parameters())]
        shown = [each.detach() if isinstance(each, torch.Tensor) else each for each in results]
        messages = [record.getMessage() for record in caplog.records if record.name.startswith("asked_gradient")]
        given.append((shown, gradients, held, torch.tensor(module.seen), messages))
        getattr(module, "between", lambda call: None)(call)
    return given


def check(name: str, backend: Counting, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        expected = found(getattr(PLAIN, name), None, caplog)
        seen = found(getattr(MENDED, name), backend, caplog)
    for one, other in zip(seen, expected, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        *tensors, messages = one
        assert messages == other[-1]
        torch.testing.assert_close(tensors, [*other[:-1]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_GRAPH])
def test_one_graph(name: str, backend: str, caplog: pytest.LogCaptureFixture) -> None:
    counting = Counting(backend)
    with torch._inductor.config.patch(fallback_random=True):
        check(name, counting, caplog)
    assert (counting.graphs, counting.runs) == (1, CALLS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.OTHERS])
def test_what_the_graph_could_not_tell_is_as_in_eager(
    name: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    check(name, Counting(backend), caplog)


@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_GRAPH])
def test_it_ends_the_graph_without_the_hook(name: str, caplog: pytest.LogCaptureFixture) -> None:
    counting = Counting("eager")
    found(getattr(PLAIN, name), counting, caplog)
    assert (counting.graphs, counting.runs) != (1, CALLS)
