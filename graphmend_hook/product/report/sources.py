"""The statements of source files: which one a line belongs to, in which function, and how it reads."""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import os
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from ...source.scopes import ModuleScope

Frame = tuple[str, int, str]  # file, line, function, as of a traceback


class Statement(NamedTuple):
    """The innermost statement around a line: its first line (1-based), the qualified name of its function, its text."""

    line: int
    function: str
    text: str


class _Source:
    """The text of a file, and what stands where in its functions; nothing where it cannot be parsed.

    statements: by line, the first line and the function of the innermost statement around it.
    functions: by qualified name, the first and the last line; a property has several of one name.
    """

    def __init__(self, file: str, _stamp: int) -> None:
        linecache.checkcache(file)
        self.lines = linecache.getlines(file)
        self.statements: dict[int, tuple[int, str]] = {}
        self.functions: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(SyntaxError, ValueError):
            for place in ModuleScope(ast.parse("".join(self.lines))).places:  # each before those inside it
                statement, node, name = place.statement, place.function.node, place.function.qualname
                for line in range(statement.lineno, (statement.end_lineno or 0) + 1):
                    self.statements[line] = statement.lineno, name
                first, _ = self.functions.get(name, (node.lineno, 0))
                self.functions[name] = first, node.end_lineno or 0


_read = functools.lru_cache(maxsize=256)(_Source)


def _source(file: str) -> _Source:
    try:
        return _read(file, os.stat(file).st_mtime_ns)
    except OSError:
        return _read(file, 0)  # a cell of a notebook, whose name is that of its text


def statement_at(file: str, line: int) -> Statement:
    """The statement around a line; one that names the line itself outside functions, or where nothing can be read."""
    source = _source(file)
    first, function = source.statements.get(line, (line, "<module>" if source.lines else ""))
    text = source.lines[first - 1].strip() if 0 < first <= len(source.lines) else ""
    return Statement(first, function, text)


def function_at(file: str, function: str) -> tuple[int, str]:
    """The first line and the text of a function by its qualified name; (0, "") where there is none."""
    source = _source(file)
    first, last = source.functions.get(function, (0, 0))
    return first, "".join(source.lines[first - 1 : last]).rstrip("\n") if first else ""


def lines_around(file: str, line: int, context: int = 8) -> tuple[int, str]:
    """The first line and the text of what stands around a line of a file; (0, "") where there is no such line."""
    lines = _source(file).lines
    if not 0 < line <= len(lines):
        return 0, ""
    first = max(line - context, 1)
    return first, "".join(lines[first - 1 : line + context]).rstrip("\n")


def module_of(file: str) -> str:
    """The dotted name under which a file would be imported, by the packages around it."""
    path = Path(file)
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


@functools.cache
def is_foreign(file: str) -> bool:
    """Is it part of torch, which is imported, of Python or of this package?  It has no line of the user's."""
    if file.startswith(("<", _OWN, os.path.join(os.path.dirname(sys.modules["torch"].__file__ or ""), ""))):
        return True
    return file.startswith(_STDLIB) and not file.startswith(_SITES)


_SITES = tuple(dict.fromkeys(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")))
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_OWN = str(Path(__file__).resolve().parents[2]) + os.sep
