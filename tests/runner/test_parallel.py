"""Tensors that several processes share (DTensor), of one rank and of two: each is compiled as it is run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
GRAPHS = {"of_all": 2}  # the test is a tensor of all ranks, of which nothing of ours is asked


@pytest.mark.parametrize("ranks", [1, 2])
def test_graphs_of_tensors_of_several_processes(ranks: int, python, tmp_path: Path) -> None:
    """Tensor parallel, sequence parallel, with FSDP2; the same decisions on all ranks, or nothing that others wait for."""
    shutil.copy(Path(__file__).with_name("parallel.py"), tmp_path)
    done = python("-m", "graphmend_hook", "parallel.py", str(ranks))
    assert done.returncode == 0, done.stderr
    lines = [re.fullmatch(r"(.+) on \w+: (\d+) graphs, (.+)", line) for line in done.stdout.splitlines()]
    assert lines
    assert len(lines) == ranks * 24
    found = [line.groups() for line in lines if line]
    expected = [(name, str(GRAPHS.get(name, 1)), "equal") for name, *_ in found]
    assert found == expected, done.stderr
