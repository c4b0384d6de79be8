"""[Defer] against eager: the same values and the same effects in the same order, from the same places."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
import torch
from observing import Counting, Observed, both, import_mended, observe, on

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue

PLAIN, MENDED = both("defer_cases")


def call(function: Any, train: bool) -> Observed:
    x = torch.arange(3.0, requires_grad=train)

    def run() -> torch.Tensor:
        if not train:
            with torch.no_grad():
                return function(x)
        result = function(x)
        result.sum().backward()
        return x.grad

    return observe(run, "defer_cases")


ON_INDUCTOR = (
    "in_a_loop",
    "under_no_grad",
    "a_tensor_written_to_later",
    "every_kind_of_text",
    "a_tensor_with_a_grad_fn",
)


@pytest.mark.parametrize(("name", "backend"), on(PLAIN.EXPECT, ON_INDUCTOR))
def test_equal_to_eager(name: str, backend: str) -> None:
    expect = PLAIN.EXPECT[name]
    expected = call(getattr(PLAIN, name), expect.train)
    refusals.seen.clear()
    counting = Counting(backend)
    compiled = torch.compile(getattr(MENDED, name), backend=counting, fullgraph=expect.fullgraph)
    assert call(compiled, expect.train) == expected
    assert counting.graphs == expect.graphs
    assert call(compiled, expect.train) == expected
    assert call(compiled, expect.train) == expected
    assert counting.graphs == expect.graphs, "recompiled"
    assert expect.refusals <= {code for code, *_ in refusals.seen} <= expect.refusals | expect.perhaps
    assert queue.graphmend_pending == []


@pytest.mark.parametrize("name", PLAIN.EXPECT)
def test_eager_is_untouched(name: str) -> None:
    train = PLAIN.EXPECT[name].train
    assert call(getattr(MENDED, name), train) == call(getattr(PLAIN, name), train)


def graph_runs(function: Any, train: bool) -> int:
    torch._dynamo.reset()
    counting = Counting("eager")
    compiled = torch.compile(function, backend=counting)
    call(compiled, train)
    counting.runs = 0
    call(compiled, train)
    return counting.runs


@pytest.mark.parametrize("name", [name for name, expect in PLAIN.EXPECT.items() if not expect.fullgraph])
@pytest.mark.slow
def test_never_in_more_parts_than_without_the_hook(name: str) -> None:
    train = PLAIN.EXPECT[name].train
    assert graph_runs(getattr(MENDED, name), train) <= graph_runs(getattr(PLAIN, name), train)


@pytest.mark.parametrize("name", [name for name, expect in PLAIN.EXPECT.items() if expect.fullgraph])
def test_the_case_breaks_without_the_hook(name: str) -> None:
    if name == "not_a_logger":
        pytest.skip("has no effect")
    compiled = torch.compile(getattr(PLAIN, name), backend="eager", fullgraph=True)
    assert call(compiled, False).error is not None


def test_a_print_of_the_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []

    def said(*texts: str, **_: object) -> None:  # also what `dis` prints for Dynamo
        kept.extend(text for text in texts if text == "hi")

    monkeypatch.setattr(builtins, "print", said)
    compiled = torch.compile(MENDED.counts_prints, backend="eager")
    for count in (1.0, 2.0, 3.0):
        assert torch.equal(compiled(kept, torch.zeros(1)), torch.tensor([count]))


def test_of_two_files_with_the_same_text_each_is_named(tmp_path: Path) -> None:
    """Code objects of two files may be equal, and Dynamo keeps what it has read of the first for both."""
    source = 'import logging\n\ndef f(x):\n    logging.getLogger("of_two_files").warning("seen")\n    return x + 1\n'
    for name in ("one", "other"):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        compiled = torch.compile(import_mended(path, name).f, backend="eager", fullgraph=True)
        seen = observe(lambda compiled=compiled: compiled(torch.ones(3)), "of_two_files")
        assert seen.effects == [("WARNING", "seen", str(path), 4, "f")]
