"""What was left in place while tracing is in the report, with its code, its place and a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

PROGRAM = """
import torch

class Thing:
    pass

def f(x):
    print(Thing)
    print(THING)
    return x + 1

THING = Thing()
torch.compile(f, backend="eager")(torch.ones(2))
"""


@pytest.mark.slow
def test_in_text_and_json(python: Any, write: Any, tmp_path: Any) -> None:
    path = write("main.py", PROGRAM)
    done = python("-m", "graphmend_hook", "--report", "main.py", GRAPHMEND_LOG="debug")
    said = "GM101-T04: left in place at {}:9 in f: an argument is an object whose text may change"
    assert said.format(path) in done.stderr
    assert "\n  defer       1         0                   1\n" in done.stderr
    left = "\nleft while tracing\n  GM101-T04, 1 site: an argument is an object whose text may change"
    assert left in done.stderr
    assert f"\n    {path.name}:9 in f\n" in done.stderr
    python("-m", "graphmend_hook", f"--report={tmp_path}/report.json", "main.py")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [(item["code"], item["line"], item["function"]) for item in report["traced"]] == [("GM101-T04", 9, "f")]
