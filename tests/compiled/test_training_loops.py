"""Loops that log, keep meters, clip, warm up and leave out bad batches: as in eager, in one graph a step."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
import torch._inductor.config
from observing import Counting, both

PLAIN, MENDED = both("training_loop_cases")
Found = tuple[list[float], list[list[Any]], list[torch.Tensor], Any, list[str], str]


def trained(module: ModuleType, name: str, compiled: Callable[[Any], Any]) -> Found:
    """The loss and the gradients of each step, and what the loop leaves: parameters, state, records, prints."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    losses: list[float] = []
    gradients: list[list[Any]] = []

    def optimized(model: torch.nn.Module) -> Callable[[torch.Tensor], None]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # which does not blow up a rounding
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10)

        def step(loss: torch.Tensor) -> None:
            loss.backward()
            losses.append(loss.item())
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

        return step

    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    module.log.addHandler(handler)
    module.log.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            model, state = module.LOOPS[name](compiled, optimized)
    finally:
        module.log.removeHandler(handler)
    return losses, gradients, [*model.state_dict().values()], state, records, printed.getvalue()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PLAIN.LOOPS)
def test_a_step_is_one_graph_and_as_in_eager(name: str, backend: str) -> None:
    counting = Counting(backend)
    options = {"fallback_random": True} if backend == "inductor" else {}  # dropout draws as eager does
    with torch._inductor.config.patch(options):
        found = trained(MENDED, name, lambda given: torch.compile(given, backend=counting))
    expected = trained(PLAIN, name, lambda given: given)
    rounded = {"rtol": 1e-4, "atol": 1e-6} if backend == "inductor" else {"rtol": 0.0, "atol": 0.0}
    for one, other in zip(found[:4], expected[:4], strict=True):
        torch.testing.assert_close(one, other, **rounded)
    assert found[4:] == expected[4:]
    assert counting.graphs <= 2
    assert counting.runs == PLAIN.STEPS
