"""The pages that people read, and the blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "bench/*.md", "bench/results/*.md", "sitecustomize_example/*.md")
    for path in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.  line: of its first line of text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str:
        """The name in a first line such as ``# model.py``; "" where there is none."""
        found = re.match(r"# (\S+\.\w+)\n", self.text)
        return found[1] if found else ""


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """The blocks of `page` in these languages; all, where none is named."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if not languages or found[1] in languages:
            yield Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def without_blocks(text: str) -> str:
    return BLOCK.sub("", text)
