"""Effects come where eager has them, in its order: those of functions that a side calls, prints by any name, and those
that show numbers which a comprehension reads."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from observing import Counting, assert_alike, begun, both, observe, with_own_names

CASES = {stem: both(stem) for stem in ("called_effect_cases", "listed_number_cases")}
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


def cases(kind: str) -> Iterator[Any]:
    for stem, (plain, _) in CASES.items():
        yield from (pytest.param(stem, each.__name__, id=each.__name__) for each in getattr(plain, kind))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(("stem", "name"), [*cases("ONE_GRAPH")])
def test_one_graph_with_eagers_effects(stem: str, name: str, backend: str) -> None:
    (plain, mended), counting = CASES[stem], Counting(backend)
    assert_alike(seen(mended, name, counting), seen(plain, name, None))
    assert (counting.graphs, counting.runs) == (1, CALLS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("stem", "name"), [*cases("AS_IN_EAGER")])
def test_what_else_they_do_is_as_in_eager(stem: str, name: str, backend: str) -> None:
    plain, mended = CASES[stem]
    assert_alike(seen(mended, name, Counting(backend)), seen(plain, name, None))
