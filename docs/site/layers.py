"""Draws the layers of the package: ``python docs/site/layers.py`` writes docs/layers.svg.

`tests/docs/test_site.py` holds it to what the files import.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "layers.svg"
# From the top: what a layer does, and its parts.  A layer imports those below it.
LAYERS = (
    ("what a person calls", ("cli", "product/commands", "product/doctor", "runner", "pytest_plugin", "ipython")),
    ("runs and compares what was compiled", ("testing", "product/explain")),
    ("takes imports over, keeps bytecode", ("hook", "product/report", "cells")),
    ("asks the rules, makes code", ("rewrite",)),
    ("what is mended, and how", ("rules",)),
    ("what a function does, read from its text", ("source",)),
    ("settings, codes, words", ("settings", "diagnostics")),
)
SIDE = ("asked while Dynamo traces", ("runtime", "engine"))
WIDTH, LEFT, STEP, HEIGHT = 930, 640, 84, 60
BOX = '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{fill}" stroke="#3f51b5"/>'
TEXT = '<text x="{x}" y="{y}" font-size="{size}" fill="#1a237e">{text}</text>'
ARROW = '<path d="M{x} {y} v{length}" stroke="#3f51b5" marker-end="url(#head)"/>'
HEAD = (
    '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
    '<path d="M0 0 L6 3 L0 6 z" fill="#3f51b5"/></marker></defs>'
)


def shapes() -> Iterator[str]:
    for number, (does, parts) in enumerate(LAYERS):
        y = 20 + number * STEP
        yield BOX.format(x=20, y=y, w=LEFT, h=HEIGHT, fill="#e8eaf6")
        yield TEXT.format(x=34, y=y + 24, size=14, text=escape(does))
        yield TEXT.format(x=34, y=y + 46, size=12, text=escape(", ".join(parts)))
        if number + 1 < len(LAYERS):
            yield ARROW.format(x=20 + LEFT // 2, y=y + HEIGHT, length=STEP - HEIGHT - 2)
    does, parts = SIDE
    height = (len(LAYERS) - 1) * STEP + HEIGHT
    yield BOX.format(x=LEFT + 50, y=20, w=WIDTH - LEFT - 70, h=height, fill="#fff3e0")
    yield TEXT.format(x=LEFT + 64, y=44, size=14, text=escape(does))
    for number, part in enumerate(parts):
        yield TEXT.format(x=LEFT + 64, y=80 + number * 24, size=12, text=part)
    yield TEXT.format(x=LEFT + 64, y=144, size=12, text="and files named traced")
    yield TEXT.format(x=LEFT + 64, y=190, size=12, text="rewritten code calls it;")
    yield TEXT.format(x=LEFT + 64, y=208, size=12, text="nothing here rewrites")


def picture() -> str:
    height = 40 + (len(LAYERS) - 1) * STEP + HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    paper = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, HEAD, paper, *shapes(), "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
