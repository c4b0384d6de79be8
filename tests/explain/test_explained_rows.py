"""`graphmend explain` counts the graphs of real models as a counting backend does.

EXPLAIN_ROWS=all takes every row; without it, one that breaks at a log, one at a warning and one that is not mended.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

MODELS = Path(__file__).parents[1] / "models"
sys.path.insert(0, str(MODELS))
from rows import ROWS, present

VERSION = importlib.metadata.version("transformers")
FEW = ("t5", "clap")
PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
import torch, rows
from judge import Counting
model, calls = rows.build(sys.argv[2])
counting = Counting("eager")
with torch.no_grad():
    if not rows.ROWS[sys.argv[2]].fresh:
        model(**calls[0])
    torch._dynamo.reset()
    torch.compile(model, backend=counting, dynamic=False)(**calls[0])
print("graphs:", counting.graphs)
"""


@pytest.mark.parametrize(
    "name", [name for name in present(VERSION) if name in FEW or os.environ.get("EXPLAIN_ROWS") == "all"]
)
@pytest.mark.slow
def test_graphs_of_a_row(name: str, python: Any, write: Any, tmp_path: Path) -> None:
    out = tmp_path / "explained.json"
    command = ("-c", "import sys; from graphmend_hook.cli import main; sys.exit(main())", "explain", f"--json={out}")
    program = (str(write("program/row.py", PROGRAM)), str(MODELS), name)
    done = python(*command, "--modules=transformers", *program, timeout=500)
    assert done.returncode == 0, done.stderr
    explanation = json.loads(out.read_text())
    assert [sum(pair) for pair in zip(*(region["graphs"] for region in explanation["regions"]), strict=True)] == [
        ROWS[name].breaks[VERSION] + 1,
        ROWS[name].still.get(VERSION, 0) + 1,
    ]
    remaining = [each for each in explanation["breaks"] if each["state"] != "removed"]
    assert bool(remaining) == (VERSION in ROWS[name].still)
    assert all(each["said"] for each in explanation["breaks"])
