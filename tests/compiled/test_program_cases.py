"""The programs of the files of cases do what they do in eager, mended and compiled, and mended alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from programs import Programs

# What is decided before any backend sees a graph.
TRACED = ("exception", "logging", "lookalike", "number")
LOWERED = ("aliasing", "data_size", "layout", "mode", "random", "repeated_operand", "requires_grad", "side", "truth")
LOWERED += ("unused_operation", "written_later")


def programs() -> Iterator[Any]:
    for stem in (*TRACED, *LOWERED):
        file = Programs(f"{stem}_cases")
        for name in file.names:
            for backend in ("eager", *["aot_eager"] * (stem in LOWERED)):
                yield pytest.param(file, name, backend, id=f"{stem}-{name}-{backend}")


@pytest.mark.parametrize(("file", "name", "backend"), list(programs()))
def test_as_in_eager(file: Programs, name: str, backend: str) -> None:
    file.check(name, backend)
