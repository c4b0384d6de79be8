"""Branches on how much the data selects, sides that select, and exits that stand deeper in a loop."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, both

CASES = {"selections": both("data_selection_cases"), "exits": both("deep_exit_cases")}
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


def seen(module: Any, function: Any, call: int) -> Any:
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
        given = [each.detach() if isinstance(each, torch.Tensor) else repr(each) for each in results]
    except Exception as error:
        given = [type(error).__name__]
    held = repr({name: copy.copy(value) for name, value in vars(module).items() if not name.startswith("_")})
    gradients = [None if each.grad is None else each.grad.clone() for each in module.parameters()]
    return given, x, gradients, (held, RECORDS[:], torch.get_rng_state().tolist())


def cases() -> Iterator[Any]:
    for group, (plain, _) in CASES.items():
        for name in names_in(plain):
            for backend in ("eager", "aot_eager", "inductor"):
                yield pytest.param(group, name, backend, id=f"{name}-{backend}")


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
        expected, found = seen(eager, eager, call), seen(module, compiled, call)
        assert found[-1] == expected[-1]
        for other, one in zip(found[0], expected[0], strict=True):
            if isinstance(one, torch.Tensor):
                torch.testing.assert_close(other, one, equal_nan=True)
            else:
                assert other == one
        torch.testing.assert_close(found[1:3], expected[1:3], equal_nan=True)
        runs.append(counting.runs)
    stays = name in {each.__name__ for each in plain.STAY}
    assert stays or (counting.graphs, {*runs}) == (1, {1})


WHOLE = [name for name in names_in(CASES["exits"][0]) if getattr(CASES["exits"][0], name) not in CASES["exits"][0].STAY]


@pytest.mark.parametrize("name", WHOLE)
def test_one_graph(name: str) -> None:
    module = made(getattr(CASES["exits"][1], name))
    torch._dynamo.reset()
    torch.compile(module, backend="eager", fullgraph=True)(torch.randn(4, 3))
