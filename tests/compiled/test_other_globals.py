"""A mended function may run under other globals than those of its module: its code in another function."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest
import torch
from observing import Counting, Kept, import_mended

TEXT = """
import logging
import torch
logger = logging.getLogger("other_globals")
def chosen(x):
    logger.warning("sum %s", x.sum())
    if x.sum() > 0:
        x = x * factor
    else:
        x = x - 1
    return x
"""
X = torch.tensor([1.0, 2.0])


@pytest.fixture
def elsewhere(tmp_path: Path) -> FunctionType:
    """The function with globals in which nothing is ours."""
    path = tmp_path / "other_globals.py"
    path.write_text(TEXT, encoding="utf-8")
    code = import_mended(path, "other_globals").chosen.__code__
    return FunctionType(code, {"__builtins__": builtins, "logger": logging.getLogger("other_globals"), "factor": 3})


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, logger = Kept(), logging.getLogger("other_globals")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_in_eager(elsewhere: FunctionType, kept: Kept) -> None:
    assert [elsewhere(x).tolist() for x in (X, -X)] == [[3.0, 6.0], [-2.0, -3.0]]
    assert kept.texts == ["sum tensor(3.)", "sum tensor(-3.)"]


def test_compiled(elsewhere: FunctionType, kept: Kept) -> None:
    counting = Counting("eager")
    compiled = torch.compile(elsewhere, backend=counting, fullgraph=True)
    assert [compiled(x).tolist() for x in (X, -X)] == [[3.0, 6.0], [-2.0, -3.0]]
    assert kept.texts == ["sum tensor(3.)", "sum tensor(-3.)"]
    assert counting.graphs == 1
