"""The tables of codes in the pages of the rules: ``python docs/site/tables.py`` makes them anew.

A comment stands in front of each, with what the names of its codes begin with.  `graphmend_hook` has the texts beside
the codes (`codes.py` of each rule).
"""

from __future__ import annotations

import re

import links

from graphmend_hook.diagnostics import CODES
from graphmend_hook.rules.codes import TOLD

TABLE = re.compile(r"(<!-- docs/site/tables\.py: (GM\d{3}-[RT]?) -->\n)((?:\|.*\n)*)")


def filled(text: str) -> str:
    """The page with the rows of its tables as the package has them."""
    return TABLE.sub(lambda found: found[1] + _table(found[2]), text)


def _table(beginning: str) -> str:
    """A row for each code; those of what is mended all the same are told of elsewhere."""
    mine = sorted(code for code in CODES.values() if code.code.startswith(beginning) and code.code not in TOLD)
    rows = [f"| {code.code} | {code.because or code.sentence} |\n" for code in mine]
    return "".join(["| code | because |\n|---|---|\n", *rows])


if __name__ == "__main__":
    for page in (links.ROOT / "docs").glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
