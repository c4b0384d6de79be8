"""The explanation as one HTML file: the tree of calls with its graphs, and each function before and after."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..parsing import RULE_NAMES
from ..reporting.sources import function_at, statement_at
from ..reporting.text import shorten
from ..rewrite import active_rules, changes_of
from ..templates import readable
from .join import Explanation, Json, Region, by_region

_TEMPLATE = Path(__file__).with_name("page.html")
_ARMS = ("before", "after")


@dataclass
class Call:
    """A function called from a line of another, and the operations of it and below it, by graph and arm."""

    function: str
    file: str
    line: int
    operations: dict[str, Counter[int]] = field(default_factory=lambda: {arm: Counter() for arm in _ARMS})
    calls: dict[tuple[str, str, int], Call] = field(default_factory=dict)

    def add(self, arm: str, graph: int, stack: Iterable[tuple[str, int, str]], count: int) -> None:
        """Count the operations of a graph whose traceback is `stack`, outermost first."""
        self.operations[arm][graph] += count
        call, line = self, 0
        for file, at, _ in stack:
            key = (statement_at(file, at).function, file, line)
            call = call.calls.setdefault(key, Call(*key))
            call.operations[arm][graph] += count
            line = at

    def as_json(self) -> Json:
        return {
            **vars(self),
            "where": shorten(self.file),
            "operations": {arm: sorted(counts.items()) for arm, counts in self.operations.items()},
            "calls": [call.as_json() for call in self.calls.values()],
        }


def html(found: Explanation) -> str:
    """The page; it needs no network and no other file."""
    regions = [_tree(found, region) for region in found.regions]
    data = {
        "command": " ".join(found.command),
        "regions": [
            {**asdict(region), "where": shorten(region.file), "tree": tree.as_json()}
            for region, tree in zip(found.regions, regions, strict=True)
        ],
        "breaks": [{**asdict(each), "where": shorten(each.file)} for each in found.breaks],
        "sources": _sources(found, regions),
    }
    text = json.dumps(data).replace("</", "<\\/")  # it stands in a script element
    return _TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/null", text)


def _tree(found: Explanation, region: Region) -> Call:
    root = Call(region.name, region.file, region.line)
    for arm, observed in zip(_ARMS, (found.before, found.after), strict=True):
        first, *_later = by_region(observed).get((region.name, region.file, region.line), [[]])
        for index, graph in enumerate(first):
            for call in graph:
                root.add(arm, index, call["stack"], call["operations"])
    return root


def _sources(found: Explanation, regions: list[Call]) -> dict[str, Any]:
    """By ``file:function``: its first line, its text, and the text that runs instead where something is mended."""
    wanted: set[tuple[str, str]] = {(each.file, each.function) for each in found.breaks}
    waiting = list(regions)
    while waiting:
        call = waiting.pop()
        waiting += call.calls.values()
        wanted.add((call.file, call.function))
    mended = {file: _mended_functions(file) for file in {file for file, _ in wanted}}
    texts = {}
    for file, function in sorted(wanted):
        first, text = function_at(file, function)
        if text:
            texts[f"{file}:{function}"] = {"line": first, "text": text, "mended": mended[file].get(function)}
    return texts


def _mended_functions(file: str) -> dict[str, str]:
    """The text of each function of a file that has a mended site, by its qualified name."""
    try:
        changes = changes_of(Path(file).read_bytes(), file, active_rules(RULE_NAMES))
    except (OSError, SyntaxError, ValueError):
        return {}
    functions = {change.site.function: change.function.node for change in changes if change.emitted}
    return {name: readable(ast.unparse(node)) for name, node in functions.items()}
