"""Effects of functions that a side of a branch calls come where the side is taken, in eager's order; prints by any name."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from observing import Counting, assert_alike, begun, both, observe, with_own_names

PLAIN, MENDED = both("called_effect_cases")
CALLS = 6


def seen(cases: Any, name: str, backend: Counting | None) -> list[Any]:
    """What each call gives, raises and shows, with the gradients, and what it leaves in the module."""
    module, called = begun(getattr(cases, name), backend)
    found: list[Any] = []
    for call in range(CALLS):
        torch.manual_seed(call)
        x = torch.randn(3, 4) * (1 + 3 * (call % 2)) + (3 if call == 5 else 0)
        module.zero_grad(set_to_none=True)
        observed = observe(functools.partial(called, x), cases.__name__)
        shown = [with_own_names(effect) for effect in observed.effects]
        state = module.seen, module.count, module.last, torch.rand(1).item()
        found.append(f"{shown} {observed.error} {state}".replace(cases.__file__, ""))
        if observed.value is not None:
            observed.value.sum().backward()
            found += [observed.value.detach(), *(each.grad for each in module.parameters())]
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.ONE_GRAPH])
def test_one_graph_with_eagers_effects(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert_alike(seen(MENDED, name, counting), seen(PLAIN, name, None))
    assert counting.graphs == 1
    assert counting.runs == CALLS


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [each.__name__ for each in PLAIN.AS_IN_EAGER])
def test_what_else_they_do_is_as_in_eager(name: str, backend: str) -> None:
    assert_alike(seen(MENDED, name, Counting(backend)), seen(PLAIN, name, None))
