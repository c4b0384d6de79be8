"""Mended functions as lines of text: the original's, numbered, and among them those that were added."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...diagnostics import Site
from ...rewrite import Change
from ...source.scopes import Function
from ...source.templates import readable

_INDENT = "    "


@dataclass
class Line:
    """One line.  number: its place in the file, 0 for an added one.  marks: rules or codes of sites that begin here.

    replaced: what was added stands in its place; it does not run.
    """

    text: str
    number: int = 0
    marks: tuple[str, ...] = ()
    replaced: bool = False


@dataclass(frozen=True)
class Listing:
    """One function in which something is mended, those inside it included.

    lines: its lines around the sites; None stands for lines that are left out.
    """

    function: str
    sites: tuple[Site, ...]
    lines: tuple[Line | None, ...]


def listings(source: bytes, changes: Sequence[Change], context: int = 3) -> list[Listing]:
    """The functions of the module text `source` in which `changes` mended something.

    context: how many lines to show before and after each site.
    """
    text = importlib.util.decode_source(source)
    strings = _inside_strings(text)
    groups: dict[int, tuple[Function, list[Change]]] = {}
    for change in changes:
        *_, outermost = change.function.lineage()
        groups.setdefault(id(outermost), (outermost, []))[1].append(change)
    found = []
    for function, group in groups.values():
        if any(change.emitted for change in group):
            lines = _Page(text.split("\n"), strings, function).lines(group, context)
            found.append(Listing(function.qualname, tuple(change.site for change in group), tuple(lines)))
    return found


def encloses(outer: ast.stmt, inner: ast.stmt) -> bool:
    return _start(outer) <= _start(inner) and _end(inner) <= _end(outer)


class _Page:
    """The lines of one function while they are put together.

    own, rows: by its number, a line of the file, and what is shown in its place, with what is added before and after.
    """

    def __init__(self, source: list[str], strings: frozenset[int], function: Function) -> None:
        self.source = source
        self.strings = strings
        numbers = range(function.header[0], _end(function.node)[0] + 1)
        self.own = {number: Line(source[number - 1], number) for number in numbers}
        self.rows = {number: [line] for number, line in self.own.items()}

    def lines(self, changes: Sequence[Change], context: int) -> Iterator[Line | None]:
        shown: set[int] = set()
        covered = (0, 0)
        for change in changes:
            at = change.statement
            last = _end(at)[0] if change.emitted else at.lineno
            shown |= {number for number in self.rows if at.lineno - context <= number <= last + context}
            if change.emitted and _start(at) >= covered:  # else it is part of what another one emitted
                body = getattr(at, "body", None)
                covered = (body[0].lineno, 0) if body and _is_head(change) else _end(at)
                self._insert(change)
            else:
                self.own[at.lineno].marks += (change.site.code or change.site.rule,)
        previous = 0
        for number in sorted(shown):
            if previous and number > previous + 1:
                yield None
            previous = number
            yield from self.rows[number]

    def _insert(self, change: Change) -> None:
        """Add the emitted statements: around the original, or below it where it shares its lines with others."""
        at = change.statement
        text = self.source[at.lineno - 1]
        before = text.encode()[: at.col_offset].decode()
        el = "el" if text[len(before) :].startswith("elif") else ""  # goes in front of an added "if" as well
        if _is_head(change) and not before.strip():
            self._replace_head(change, before, el)
            return
        if before.strip() or not self._ends_its_line(at) or not _is_switch(change):
            added = "\n".join(ast.unparse(statement) for statement in change.emitted)
            self.rows[_end(at)[0]] += _added(added, re.sub(r"\S", " ", before), change)
            if not before.strip() and self._ends_its_line(at):
                for number in range(at.lineno, _end(at)[0] + 1):
                    self.own[number].replaced = True
            return
        switch = change.emitted[0]
        assert isinstance(switch, ast.If)
        for number in range(at.lineno, _end(at)[0] + 1):
            line = self.source[number - 1]
            if number not in self.strings and line.startswith(before) and line.strip():  # not: a comment further left
                self.own[number].text = before + _INDENT + line[len(before) :]
        self.own[at.lineno].text = before + _INDENT + text[len(before) + len(el) :]
        added = el + ast.unparse(ast.If(switch.test, switch.body, [])) + "\nelse:"
        self.rows[at.lineno][:0] = _added(added, before, change)

    def _replace_head(self, change: Change, before: str, el: str) -> None:
        """Show the new head of a statement with blocks instead of the old one."""
        at, new = change.statement, change.emitted[0]
        head = type(new)(**{**dict(ast.iter_fields(new)), "body": [], "orelse": []})
        for number in range(at.lineno, _start(at.body[0])[0]):  # type: ignore[attr-defined]
            self.rows[number].remove(self.own[number])
        self.rows[at.lineno][:0] = _added(el + ast.unparse(ast.copy_location(head, new)), before, change)

    def _ends_its_line(self, statement: ast.stmt) -> bool:
        line, column = _end(statement)
        rest = self.source[line - 1].encode()[column:].strip()
        return not rest or rest.startswith(b"#")


def _inside_strings(text: str) -> frozenset[int]:
    """The lines that begin inside a string literal, whose indentation is part of its value."""
    found: set[int] = set()
    begins = []  # from Python 3.12 on, f-strings are tokens of their own kinds
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("STRING", "FSTRING_START"):
            begins.append(token.start[0])
        if kind in ("STRING", "FSTRING_END"):
            found.update(range(begins.pop() + 1, token.end[0] + 1))
    return frozenset(found)


def _is_switch(change: Change) -> bool:
    """Is it the form that rules emit: an ``if`` whose ``else`` is the original?"""
    switch = change.emitted[0]
    if len(change.emitted) > 1 or not isinstance(switch, ast.If) or len(switch.orelse) != 1:
        return False
    original = switch.orelse[0]
    return isinstance(change.statement, type(original)) and _start(original) == _start(change.statement)


def _is_head(change: Change) -> bool:
    """Was nothing changed but the head of a statement whose blocks begin on lines of their own?"""
    at, new = change.statement, change.emitted[0]
    blocks = getattr(at, "body", None)
    same = len(change.emitted) == 1 and type(new) is type(at) and bool(blocks) and getattr(new, "body", None) is blocks
    return same and blocks[0].lineno > at.lineno and not isinstance(blocks[0], ast.FunctionDef)  # type: ignore[index]


def _added(code: str, indentation: str, change: Change) -> list[Line]:
    lines = [Line(indentation + line) for line in readable(code).split("\n")]
    lines[0].marks = (change.site.rule,)
    return lines


def _start(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _end(statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or 0, statement.end_col_offset or 0
