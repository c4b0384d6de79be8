"""The page of other libraries is made of results of which some may be older than what is measured today."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from bench.ecosystem.__main__ import RESULTS, ROOT, page, verdicts

COUNTING = """
import json, torch
from bench.ecosystem.arm import observe

class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + 1

print(json.dumps(observe(Counts, lambda: (torch.rand(2),))))
"""


def line(off: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    common = {"breaks": [["file.py:1", "why", ""]], "whole": False, "differs": []}
    return {"library": "lib", "case": "case", "off": {**common, **off}, "on": {**common, **on}}


def test_the_page_of_the_results_that_are_kept() -> None:
    assert "| **all** |" in page(json.loads(RESULTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("off", "on", "is_worse"),
    [
        ({"graphs": [3]}, {"graphs": [4]}, True),  # measured before operations were counted
        ({"graphs": [3]}, {"graphs": [3]}, False),
        ({"graphs": [3], "operations": [9]}, {"graphs": [4], "operations": [17]}, False),
        ({"graphs": [3], "operations": [9]}, {"graphs": [4], "operations": [9]}, True),
        ({"graphs": [3], "operations": [9]}, {"graphs": [2], "operations": [8]}, True),
    ],
)
def test_what_is_worse(off: dict[str, Any], on: dict[str, Any], is_worse: bool) -> None:
    assert ("worse" in verdicts(line(off, on))) == is_worse


@pytest.mark.parametrize(
    ("off", "on", "is_worse"),
    [
        ({"graphs": [1, 1]}, {"graphs": [1, 8]}, True),  # measured before runs were counted
        ({"graphs": [2, 4]}, {"graphs": [1, 4]}, False),
        ({"graphs": [2, 2], "runs": [2, 2], "ran": [9, 9]}, {"graphs": [1, 2], "runs": [1, 1], "ran": [9, 9]}, False),
        ({"graphs": [1, 1], "runs": [1, 1], "ran": [9, 9]}, {"graphs": [1, 1], "runs": [1, 0], "ran": [9, 0]}, True),
        ({"graphs": [3, 3], "runs": [7, 8], "ran": [50, 58]}, {"graphs": [1, 1], "runs": [1, 1], "ran": [3, 3]}, False),
        ({"graphs": [1, 2], "runs": [1, 1], "ran": [9, 9]}, {"graphs": [2, 2], "runs": [2, 2], "ran": [9, 9]}, True),
    ],
)
def test_what_ends_worse(off: dict[str, Any], on: dict[str, Any], is_worse: bool) -> None:
    off, on = ({"operations": [9], **arm, "breaks": [], "whole": True} for arm in (off, on))
    assert ("worse" in verdicts(line(off, on))) == is_worse


def test_each_call_says_how_many_graphs_run() -> None:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", COUNTING], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found["graphs"]) == 12 and found["graphs"][-1] == 8
    assert found["runs"][0] == 1 and found["runs"][-1] == 0  # past the limit of recompilations
    assert found["ran"][0] == 1 and found["differs"] == []
