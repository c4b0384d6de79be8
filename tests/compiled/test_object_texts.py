"""Texts of containers, of objects and of counters are those that eager makes."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("text_cases")


def seen(function: Any, module: Any, name: str, call: int) -> tuple[Any, str]:
    torch.manual_seed(call)
    module.meter.total += call  # what the program does between two calls
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        _, given = function(torch.randn(3), name)
    return given, printed.getvalue()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PLAIN.NAMES)
def test_as_in_eager(name: str, backend: str) -> None:
    torch._dynamo.reset()
    plain, mended, counting = PLAIN.Texts(), MENDED.Texts(), Counting(backend)
    compiled = torch.compile(mended, backend=counting)
    for call in range(6):
        assert seen(compiled, mended, name, call) == seen(plain, plain, name, call)
    assert counting.graphs <= 2 or name not in PLAIN.ONE_GRAPH
