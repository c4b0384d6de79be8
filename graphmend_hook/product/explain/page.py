"""The explanation as one HTML file: the breaks by their causes, the graphs, and each function beside what runs."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from dataclasses import asdict
from pathlib import Path

from ..report.sources import Frame, statement_at
from ..report.text import shorten
from .calls import Call, tree_of
from .causes import causes_of
from .join import Break, Caller, Explanation, Json
from .paired import Sources
from .text import summary

_WEB = Path(__file__).with_name("web")
_SCRIPTS = ("nodes.js", "source.js", "breaks.js", "strips.js", "regions.js", "page.js")


def html(found: Explanation) -> str:
    """The page; it needs no network and no other file.

    What comes from the program is in one element, as data that no browser runs: the script makes text of it, never
    markup.  Any other script is refused by the page's own policy, which names ours by their hashes.
    """
    script, style = "".join(map(_read, _SCRIPTS)), _read("page.css")
    data = json.dumps(_Data(found).as_json(), separators=(",", ":")).replace("<", "\\u003c")  # no end of the element
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}"
    # The data come last: what is in them is no place to fill in.
    page = _read("page.html").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script).replace("POLICY", policy)
    before, after = page.split("/*DATA*/")
    return f"{before}{data}{after}"


def _read(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class _Data:
    """What the script is given.  Files stand once, and are spoken of by their numbers."""

    def __init__(self, found: Explanation) -> None:
        self._found = found
        self._numbers: dict[str, int] = {}
        self._wanted: dict[tuple[str, str], int] = {}  # functions to be shown, and a line of each

    def as_json(self) -> Json:
        found = self._found
        causes = [
            {**asdict(cause), "breaks": [self._break(each) for each in cause.breaks]}
            for cause in causes_of(found.breaks)
        ]
        trees = [tree_of(found, region) for region in found.regions]
        regions = [
            {**asdict(region), "file": self._number(region.file), "tree": self._tree(tree)}
            for region, tree in zip(found.regions, trees, strict=True)
        ]
        data = {"causes": causes, "regions": regions, "sources": self._sources(), "about": self._about()}
        return {**data, "files": [{"path": file, "where": shorten(file)} for file in self._numbers]}

    def _about(self) -> Json:
        found = self._found
        backends = {"backend": ", ".join(found.backends)} if found.backends else {}
        return {
            "summary": summary(found),
            "command": shlex.join(found.command),
            "versions": {**found.versions, **backends},
            "interrupted": found.interrupted,
        }

    def _number(self, file: str) -> int:
        return self._numbers.setdefault(file, len(self._numbers))

    def _break(self, each: Break) -> Json:
        self._wanted.setdefault((each.file, each.function), each.line)
        callers = [self._caller(caller) for caller in each.callers]
        return {**asdict(each), "file": self._number(each.file), "headline": each.headline, "callers": callers}

    def _caller(self, caller: Caller) -> Json:
        return {"stack": [self._frame(frame) for frame in caller.stack], "times": caller.times}

    def _frame(self, frame: Frame) -> tuple[int, int, str]:
        """With the qualified name of the function, if that is known."""
        file, line, name = frame
        function = statement_at(file, line).function or name
        self._wanted.setdefault((file, function), line)
        return self._number(file), line, function

    def _tree(self, tree: Call) -> Json:
        for call in tree.everything():
            self._wanted.setdefault((call.file, call.function), 0)
        return tree.as_json(self._number)

    def _sources(self) -> Json:
        """By the number of the file and the name of the function; without those that cannot be read."""
        sources = Sources(self._found.after["report"])
        paired = {
            f"{self._number(file)}:{function}": sources.paired(file, function, line)
            for (file, function), line in self._wanted.items()
        }
        return {key: found for key, found in paired.items() if found}
