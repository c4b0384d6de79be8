"""Sides that draw, or write statistics, are in one graph: the same numbers, gradients and generators as in eager."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, Kept, assert_calls_alike, assert_left, both

PLAIN, MENDED = both("drawing_side_cases")
CALLS = 8


def seen(module: ModuleType, kind: Any, backend: Any) -> Iterator[list[Any]]:
    """What each call gives, the gradients, buffers and attributes behind it, the random stream, and the records."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made, records = kind(), Kept()
    called = made if backend is None else torch.compile(made, backend=backend)
    module.log.addHandler(records)
    module.log.setLevel("INFO")
    try:
        for call in range(CALLS):
            torch.manual_seed(call)
            x = torch.randn(3, 4) + (0.3 if call % 3 else -0.3)
            made.zero_grad()
            result, drawn = called(x)
            result.sum().backward()
            gradients = [each.grad for each in made.parameters()]
            buffers = [each.clone() for each in made.buffers()]
            yield [result.detach(), drawn, *gradients, *buffers, made.last, torch.rand(3), [*records.texts]]
    finally:
        module.log.removeHandler(records)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", sorted(PLAIN.CASES))
def test_is_one_graph_and_as_in_eager(name: str, backend: str) -> None:
    counting = Counting(backend)
    with torch._inductor.config.patch(fallback_random=True):  # else Inductor draws other numbers, elsewhere too
        assert_calls_alike(seen(MENDED, MENDED.CASES[name], counting), seen(PLAIN, PLAIN.CASES[name], None))
    assert counting.graphs <= 2 and counting.runs == CALLS


@pytest.mark.parametrize("name", sorted(PLAIN.LEFT))
def test_what_cannot_be_known_is_no_worse_than_without_the_hook(name: str) -> None:
    assert_left(seen, (PLAIN, MENDED), name)


@pytest.mark.parametrize("name", ["DropsLayersAndCounts", "DropsLayersAndSqueezes", "DropsLayersWithStatistics"])
def test_a_hook_that_is_registered_later_is_heard(name: str) -> None:
    outcomes = []
    for compiles in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = (MENDED.CASES | MENDED.LEFT)[name]()
        called, heard = torch.compile(model, backend="aot_eager") if compiles else model, []
        for call in range(6):
            if call == 2:
                model.layers[0].weight.register_hook(lambda gradient: heard.append(gradient.sum()))  # noqa: B023
            torch.manual_seed(call)
            called(torch.randn(3, 4))[0].sum().backward()
        outcomes.append([*heard, *(each.grad for each in model.parameters()), *model.buffers()])
    torch.testing.assert_close(*outcomes)


def test_an_unbound_name_fails_as_in_eager() -> None:
    torch._dynamo.reset()
    model = MENDED.LEFT["ReadsWhatMayBeUnbound"]()
    compiled, outcomes = torch.compile(model, backend="aot_eager"), []
    for called in (model, compiled):
        for seed in range(6):
            torch.manual_seed(seed)
            try:
                outcomes.append(called(torch.full((3, 4), 1e6 if seed % 2 else 1.0))[0].shape)
            except UnboundLocalError:
                outcomes.append("unbound")
    assert outcomes[:6] == outcomes[6:]
