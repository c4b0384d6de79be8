"""Other libraries, where they are installed (``constraints/ecosystem.txt``): what the page says is freed is freed.

Each library is measured as `bench.ecosystem` does, without the hook and with it, in processes of its own.
"""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from bench.ecosystem import MODULES
from bench.ecosystem.__main__ import RESULTS, measure, verdicts

LINES = json.loads(RESULTS.read_text(encoding="utf-8"))["lines"]
FREED: dict[str, list[str]] = {}
for line in LINES:
    if "freed" in verdicts(line):
        FREED.setdefault(line["library"], []).append(line["case"])


@pytest.mark.slow
@pytest.mark.parametrize("library", FREED)
def test_what_was_freed_is_freed(library: str) -> None:
    if any(find_spec(package) is None for package in MODULES[library]):
        pytest.skip(f"{library}, or what belongs to it, is not installed")
    found = {line["case"]: verdicts(line) for line in measure([library], FREED[library])}
    assert found.keys() >= {*FREED[library]}
    assert {case: said for case, said in found.items() if case in FREED[library] and said != ["broken", "freed"]} == {}
