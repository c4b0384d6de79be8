"""Branches on how much the data selects, exits deeper in a loop, what functions answer, and lists of late numbers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, both

CASES = {
    "selections": both("data_selection_cases"),
    "exits": both("deep_exit_cases"),
    "answers": both("answer_cases"),
    "lists": both("late_list_cases"),
    "factorisations": both("factorisation_cases"),
}
RECORDS: list[str] = []


class Listening(logging.Handler):
    """Keeps what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        RECORDS.append(record.getMessage())


def names_in(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type) and "forward" in vars(value)]


def made(kind: Any) -> Any:
    torch.manual_seed(0)
    return kind()


def shown(value: Any, is_exact: bool) -> str:
    """Its text; of a float that Inductor may have calculated in another order, its type and three digits."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(shown(each, is_exact) for each in value)})"
    return repr(value) if is_exact or not isinstance(value, float) else f"float {value:.3g}"


def seen(module: Any, function: Any, call: int, is_exact: bool = True) -> Any:
    """What it gives or raises, the gradients, what the module holds, what was logged, and the random stream."""
    torch.manual_seed(call)
    x = torch.randn(4, 3) * (0.4 + call % 4)
    RECORDS.clear()
    module.zero_grad(set_to_none=True)
    try:
        given: Any = function(x)
        results = given if isinstance(given, tuple) else (given,)
        trained = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        if trained:
            sum(trained).backward()
        given = [each.detach() if isinstance(each, torch.Tensor) else shown(each, is_exact) for each in results]
    except Exception as error:
        given = [type(error).__name__]
    held = [(name, shown(value, is_exact)) for name, value in vars(module).items() if not name.startswith("_")]
    gradients = [None if each.grad is None else each.grad.clone() for each in module.parameters()]
    return given, x, gradients, (held, RECORDS[:], torch.get_rng_state().tolist())


def cases() -> Iterator[Any]:
    for group, (plain, _) in CASES.items():
        for name in names_in(plain):
            for backend in ("eager", "aot_eager", "inductor"):
                yield pytest.param(group, name, backend, id=f"{name}-{backend}")


@torch._inductor.config.patch(fallback_random=True)
@pytest.mark.parametrize(("group", "name", "backend"), list(cases()))
def test_equal_to_eager(group: str, name: str, backend: str) -> None:
    plain, mended = CASES[group]
    torch._dynamo.reset()
    for module in (plain, mended):
        logger = logging.getLogger(module.__name__)
        logger.handlers, logger.propagate = [Listening()], False
    eager, module = made(getattr(plain, name)), made(getattr(mended, name))
    compiled = torch.compile(module, backend=(counting := Counting(backend)))
    runs = []
    for call in range(10):
        counting.runs = 0
        is_exact = backend != "inductor"
        expected, found = seen(eager, eager, call, is_exact), seen(module, compiled, call, is_exact)
        assert found[-1] == expected[-1]
        for other, one in zip(found[0], expected[0], strict=True):
            if isinstance(one, torch.Tensor):
                torch.testing.assert_close(other, one, equal_nan=True)
            else:
                assert other == one
        torch.testing.assert_close(found[1:3], expected[1:3], equal_nan=True)
        runs.append(counting.runs)
    stays = name in {each.__name__ for each in plain.STAY}
    most = getattr(plain, "AGAIN", {}).get(getattr(plain, name), 1)
    assert stays or (counting.graphs <= most and {*runs} == {1})


WHOLE = [
    (group, name)
    for group in ("exits", "answers", "lists", "factorisations")
    for name in names_in(CASES[group][0])
    if getattr(CASES[group][0], name) not in CASES[group][0].STAY
]


@pytest.mark.parametrize(("group", "name"), WHOLE)
def test_one_graph(group: str, name: str) -> None:
    module = made(getattr(CASES[group][1], name))
    torch._dynamo.reset()
    torch.compile(module, backend="eager", fullgraph=True)(torch.randn(4, 3))


def test_it_gives_that_very_tensor() -> None:
    module = made(CASES["answers"][1].WritesToWhatItFinds)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="aot_eager")
    for scale in (0.01, 100.0):
        given, found = compiled(torch.ones(4, 3) * scale)
        assert found is (given if found is not None else None)
    assert found is not None
