"""The cases of `attack_cases`, uncompiled and as they were written against mended, in eager and compiled."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from observing import Kept, import_file, import_mended

HERE = Path(__file__).parent
PLAIN = import_file(HERE / "attack_cases.py", "attack_cases")
MENDED = import_mended(HERE / "attack_cases.py", "attack_cases_mended")
CASES = [name for name in vars(PLAIN) if name.startswith("case_")]
Compile = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Each case finds the modes of a new process."""
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_grad_enabled(True)
    torch.set_float32_matmul_precision(precision)


def seen(module: Any, name: str, compiled: Compile) -> list[Any]:
    """What the case gives and logs."""
    kept, logger = Kept(), logging.getLogger("attack_cases")
    torch._dynamo.reset()
    torch.manual_seed(0)
    logger.addHandler(kept)
    try:
        return [plain(getattr(module, name)(compiled)), kept.texts]
    finally:
        logger.removeHandler(kept)


def plain(value: Any) -> Any:
    """A value that can be compared: tensors as their type, strides and numbers."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.stride(), value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def by(backend: str) -> Compile:
    return lambda function: torch.compile(function, backend=backend)


@pytest.mark.parametrize("name", CASES)
def test_in_eager(name: str) -> None:
    assert seen(MENDED, name, lambda function: function) == seen(PLAIN, name, lambda function: function)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str, backend: str) -> None:
    """What the compiled original does not do as eager, the mended one need not do either."""
    expected, found = seen(PLAIN, name, lambda function: function), seen(MENDED, name, by(backend))
    if found != expected:
        assert seen(PLAIN, name, by(backend)) == found, f"eager gives {expected}"


def test_a_print_of_the_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []

    def said(*texts: str, **_: object) -> None:  # also what `dis` prints for Dynamo
        kept.extend(text for text in texts if text == "hi")

    monkeypatch.setattr(builtins, "print", said)
    compiled = torch.compile(MENDED.counts_prints, backend="eager")
    for count in (1.0, 2.0, 3.0):
        assert torch.equal(compiled(kept, torch.zeros(1)), torch.tensor([count]))


def test_a_caller_that_stands_in_no_file() -> None:
    """A cell of a notebook, `python -c`: also there a broken caller may write to what a helper has given it."""
    text = (
        "def caller(x):\n    kept = x\n    for _ in range(2):\n        torch._dynamo.graph_break()\n"
        "        y = at_least_zero(x)\n        y.add_(1)\n    return kept * 1\n"
    )
    names = {"torch": torch, "at_least_zero": MENDED.at_least_zero}
    exec(compile(text, "<string>", "exec"), names)
    compiled = torch.compile(names["caller"], backend="eager")
    for value in (1.0, -1.0, 2.0):
        x = torch.full((3,), value)
        assert torch.equal(compiled(x.clone()), names["caller"](x.clone()))


def test_without_dynamos_own_generators() -> None:
    """What is traced of ours needs none: a program that sets this, and has none, compiles as it did."""
    x = PLAIN.rows(2)
    with torch._dynamo.config.patch(enable_faithful_generator_behavior=False):
        found = torch.compile(MENDED.of_selected(MENDED.halves_and_squares), backend="eager")(x)
    assert torch.equal(found, PLAIN.of_selected(PLAIN.halves_and_squares)(x))
