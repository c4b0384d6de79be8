"""The source of a function beside what runs in its place: aligned line by line, in tokens for colours."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from ...diagnostics import Outcome
from ...rewrite import active_rules, changes_of
from ...settings.syntax import RULE_NAMES
from ..report.listing import Line, listings
from ..report.sources import function_at, lines_around
from .join import Json

# The class that a token has in the page, by the first of these kinds that it is of.
_CLASSES = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Operator.Word, "k"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
    (Name.Builtin, "b"),
)
_WHOLE = 1_000_000  # lines of context: all of the function

Tokens = list[str]  # texts and classes in turn: text, class, text, class ...
Row = tuple[int, Tokens | None, Tokens | None]  # number, as it is written, as it runs; None: there is no such line


class Paired(NamedTuple):
    """A function by its lines.  is_mended: does anything run that is not written?"""

    rows: list[Row]
    is_mended: bool


class Sources:
    """Functions beside what the run with the hook made of them, as its report has it."""

    def __init__(self, report: Json) -> None:
        hooks = [hook for process in report.get("processes", ()) for hook in process["hooks"]]
        names = {name for hook in hooks for name in hook["rules"]} if hooks else set(RULE_NAMES)
        self._rules = active_rules(sorted(names))
        self._modules = {each["path"]: each for each in report["modules"] if each["status"] == "mended"}
        self._listings: dict[str, list[list[Line]]] = {}

    def paired(self, file: str, function: str, line: int = 0) -> Paired | None:
        """A function, or what stands around `line` where there is none of that name; None where nothing can be read."""
        first, text = function_at(file, function)
        if not text and line:
            first, text = lines_around(file, line)
        if not text:
            return None
        written = text.split("\n")
        runs = self._running(file, first, first + len(written) - 1)
        margin = len(written[0]) - len(written[0].lstrip())  # a method is shown as a function is
        runs = [replace(each, text=_without(margin, each.text)) for each in runs]
        return Paired(list(_rows(first, [_without(margin, text) for text in written], runs)), bool(runs))

    def _running(self, file: str, first: int, last: int) -> list[Line]:
        """The lines that run in the place of those from `first` to `last`; none where nothing in them is mended."""
        if file not in self._listings:
            self._listings[file] = self._listed(file)
        for lines in self._listings[file]:
            inside, part = False, []
            for each in lines:
                inside = first <= each.number <= last if each.number else inside
                part += [each] if inside else []
            if any(not each.number for each in part):
                return part
        return []

    def _listed(self, file: str) -> list[list[Line]]:
        module = self._modules.get(file)
        if module is None:
            return []
        mended = {(site["line"], site["rule"]) for site in module["sites"] if site["outcome"] == Outcome.MENDED.value}
        try:
            source = Path(file).read_bytes()
            changes = [
                each
                for each in changes_of(source, file, self._rules)
                if (each.site.line, each.site.rule) in mended or not each.emitted
            ]
        except (OSError, SyntaxError, ValueError):
            return []
        return [[line for line in each.lines if line] for each in listings(source, changes, _WHOLE)]


def _rows(first: int, written: list[str], runs: list[Line]) -> Iterator[Row]:
    """Every line of both sides once, in the order of both; lines that are gone beside those in their place."""
    original = dict(enumerate(_tokens(written), first))
    if not runs:
        for number, tokens in original.items():
            yield number, tokens, tokens
        return
    running = _tokens([each.text for each in runs])
    left: list[Row] = []  # what is gone, and what is added, of one site
    right: list[Row] = []
    for each, tokens in zip(runs, running, strict=True):
        if each.number:
            gone = [number for number in original if number < each.number]  # a head in whose place another runs
            left += [(number, original.pop(number), None) for number in gone]
        same = each.number and not each.replaced
        if same or (right and (each.number or each.marks)):  # it is of no site, or of the next one
            yield from _beside(left, right)
            left, right = [], []
        if same:
            yield each.number, original.pop(each.number), tokens
        elif each.number:
            left.append((each.number, original.pop(each.number), None))
        else:
            right.append((0, None, tokens))
    left += [(number, tokens, None) for number, tokens in original.items()]
    yield from _beside(left, right)


def _beside(gone: list[Row], added: list[Row]) -> Iterator[Row]:
    for left, right in itertools.zip_longest(gone, added, fillvalue=(0, None, None)):
        yield left[0], left[1], right[2]


def _without(margin: int, text: str) -> str:
    return text if text[:margin].strip() else text[margin:]  # a string may go on further left


def _tokens(lines: list[str]) -> list[Tokens]:
    """The tokens of each line, neighbours of one class put together."""
    found: list[Tokens] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        name = _class_of(kind)
        for index, part in enumerate(text.split("\n")):
            if index:
                found.append([])
            line = found[-1]
            if part and line and line[-1] == name:
                line[-2] += part
            elif part:
                line += [part, name]
    return found


def _class_of(kind: Any) -> str:
    return next((name for each, name in _CLASSES if kind in each), "")
