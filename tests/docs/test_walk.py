"""docs/walk.md: each command shows what stands below it, in one folder, one after the other.

``UPDATE_WALK=1 pytest tests/docs/test_walk.py`` writes what they show now into the page.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from sandbox import COMMAND, Sandbox, has_pip

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("IPython")
PAGE = pages.ROOT / "docs" / "walk.md"
# The page is of these versions; others find other breaks, and say other words about them.
MADE_WITH = ("2.13.", "4.52.")
# What differs from run to run, and from machine to machine.
CHANGING = {
    r"\b\d+\.\d+ s\b": "N s",
    r"\b\d+ ms\b": "N ms",
    r"\bprocess \d+\b": "process N",
    r"\+cpu|\+cu\d+": "",
    r"\b\d+(\.\d+)? [KM]i?B\b": "N MB",
    r"│ \d+ of \d+ ": "│ N of N ",
    r" +│": " │",  # a column is as wide as what is in it
    r"deleted \d+ entries": "deleted N entries",
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_pip(), reason="installs by pip"),
    pytest.mark.skipif(
        not (torch.__version__.startswith(MADE_WITH[0]) and transformers.__version__.startswith(MADE_WITH[1])),
        reason="the page is of torch 2.13 and transformers 4.52",
    ),
]


def normalised(text: str) -> str:
    for changing, fixed in CHANGING.items():
        text = re.sub(changing, fixed, text)
    return text


def walked(sandbox: Sandbox) -> Iterator[tuple[pages.Block, str]]:
    """Each screen of the page, and what it has to be; files are written as they come."""
    for block in pages.blocks(PAGE):
        if block.language == "console":
            yield block, "".join(f"$ {command}\n{sandbox.run(command)}" for command, _ in COMMAND.findall(block.text))
        elif block.file:
            (sandbox.home / block.file).write_text(block.text, encoding="utf-8")


def test_each_step_shows_what_the_page_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    different = []
    for block, shown in walked(Sandbox(tmp_path)):
        if normalised(block.text) != normalised(shown):
            lines = difflib.unified_diff(block.text.splitlines(), shown.splitlines(), str(block), "now", lineterm="")
            different += lines
            text = text.replace(f"```console\n{block.text}```", f"```console\n{shown}```", 1)
    if os.environ.get("UPDATE_WALK"):
        PAGE.write_text(text, encoding="utf-8")
    else:
        assert not different, "\n".join(different)


def test_it_is_the_whole_way() -> None:
    """The page has a step for each thing that a new user does."""
    words = " ".join(block.text for block in pages.blocks(PAGE, "console"))
    for step in ("pip install", "demo", "explain", "rules", "--baseline", "IPython", "pip uninstall"):
        assert step in words, step
