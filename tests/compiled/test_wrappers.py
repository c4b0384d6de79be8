"""[Defer] through wrappers, against eager: the same effects in the same order, with the callers that eager shows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
import wrapper_cases as NAMES
from observing import HERE, Counting, Observed, import_file, import_mended, observe

from graphmend_hook.dynamo import queue, refusals


def modules() -> tuple[ModuleType, ModuleType]:
    """The cases as they are, and mended: new ones, whose caches are empty."""
    path = HERE / "wrapper_cases.py"
    return import_file(path, "wrapper_cases_plain"), import_mended(path, "wrapper_cases_mended")


def call(function: Any) -> Observed:
    def run() -> torch.Tensor:
        with torch.no_grad():
            return function(torch.arange(3.0))

    return observe(run, "wrapper_cases")


@pytest.mark.parametrize("name", NAMES.EXPECT)
def test_equal_to_eager(name: str) -> None:
    expect, (plain, mended) = NAMES.EXPECT[name], modules()
    reference = getattr(plain, name)
    if name in NAMES.AS_STOCK:
        reference = torch.compile(reference, backend="aot_eager")
    expected = [call(reference) for _ in range(3)]
    refusals.seen.clear()
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(mended, name), backend=counting, fullgraph=expect.fullgraph)
    assert [call(compiled) for _ in range(3)] == expected
    assert counting.graphs == expect.graphs
    assert {code for code, *_ in refusals.seen} == expect.refusals
    assert queue.graphmend_pending == []


@pytest.mark.parametrize("name", NAMES.EXPECT)
def test_eager_is_untouched(name: str) -> None:
    plain, mended = modules()
    assert [call(getattr(mended, name)) for _ in range(2)] == [call(getattr(plain, name)) for _ in range(2)]
