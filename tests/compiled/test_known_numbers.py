"""What is made of numbers that are known before the graph is made before it: nothing compiles for their values."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, Kept, both

PLAIN, MENDED = both("known_number_cases")
CALLS = 8
# In one graph in each call, compiled so often.  In stock one of them is compiled less than each second call.
GRAPHS = {
    "decays_an_average": 1,
    "corrects_a_bias": 1,
    "tunes_a_temperature": 1,
    "smooths_in_a_dict": 2,
    "counts_in_a_list": 1,
    "stops_early": 2,
    "anneals_in_steps": 2,
    "of_an_argument": 2,
    "diffuses": 2,
    "of_a_float": 1,
    "rounds": 2,
    "in_a_side": 1,
    "is_compared_with_the_data": 2,
    "is_given_to_operations": 2,
    "meets_other_types": 2,
    "of_a_size": 2,
    "is_shown": 2,
    "is_stored_between": 2,
    "trains": 2,
    "in_a_loop": 2,
    "catches_a_division": 2,
    "is_great": 2,
    "multiplies_by_whole_numbers": 1,
}


def leaves(value: Any) -> list[Any]:
    """The parts of a value, in order; floats as tensors."""
    if isinstance(value, dict):
        return [part for key, each in value.items() for part in (key, *leaves(each))]
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in leaves(each)]
    return [torch.tensor(value) if isinstance(value, float) else value]


def assert_alike(found: Any, expected: Any) -> None:
    """Is each part what eager gives, to what another order of sums and roundings makes of it?"""
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        if isinstance(other, torch.Tensor):
            is_short = other.dtype in (torch.float16, torch.bfloat16)
            torch.testing.assert_close(one, other, rtol=3e-2 if is_short else 1e-4, atol=1e-5, equal_nan=True)
        else:
            assert (type(one), one) == (type(other), other)


def seen(module: ModuleType, name: str, backend: Counting | None) -> Iterator[Any]:
    """What each call gives or raises, and leaves, with the gradients and what it shows."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made, records = module.Module(module.CASES[name]), Kept()
    grows = hasattr(module.CASES[name], "grows")
    called = made if backend is None else torch.compile(made, backend=backend)
    module.log.addHandler(records)
    module.log.setLevel(logging.INFO)
    try:
        for call in range(CALLS):
            torch.manual_seed(call)
            given = torch.randn(3 + call * grows, 4)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                try:
                    result = called(given, call)
                except (ValueError, ZeroDivisionError, OverflowError) as error:
                    result = repr(error)
            if isinstance(result, torch.Tensor) and result.requires_grad:
                result.sum().backward()
            gradients = [each.grad for each in made.parameters()]
            numbers = {key: vars(made)[key] for key in ("count", "scale", "best", "state", "counts")}
            value = result.detach() if isinstance(result, torch.Tensor) else result
            yield copy.deepcopy(
                (value, gradients, made.kept, numbers, printed.getvalue(), records.texts, torch.rand(1))
            )
    finally:
        module.log.removeHandler(records)


def cases() -> Iterator[tuple[str, str]]:
    """Each case on each backend; Inductor draws other numbers."""
    for name in PLAIN.CASES:
        yield from ((backend, name) for backend in ("eager", "aot_eager"))
        if name != "drops":
            yield "inductor", name


@pytest.mark.parametrize(("backend", "name"), [*cases()])
def test_as_in_eager(backend: str, name: str) -> None:
    counting, expected = Counting(backend), [*seen(PLAIN, name, None)]
    for found, wanted in zip(seen(MENDED, name, counting), expected, strict=True):
        assert_alike(found, wanted)
    if name in GRAPHS:
        assert (counting.graphs, counting.runs) == (GRAPHS[name], CALLS)


@pytest.mark.parametrize("name", sorted(GRAPHS.keys() - {"rounds"}))
def test_a_graph_for_each_value_without_the_hook(name: str) -> None:
    counting = Counting("aot_eager")
    assert len([*seen(PLAIN, name, counting)]) == CALLS
    assert counting.graphs > GRAPHS[name]
