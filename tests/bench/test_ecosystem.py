"""The page of other libraries is made of results of which some may be older than what is measured today."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.ecosystem.__main__ import RESULTS, page, verdicts


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
