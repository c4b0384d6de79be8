"""The statements of source files: which one a line belongs to, in which function, and how it reads."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sysconfig
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Statement:
    """The innermost statement around a line: its first line (1-based), the qualified name of its function, its text."""

    line: int
    function: str
    text: str


def _statements(file: str) -> tuple[dict[int, tuple[int, str]], list[str]]:
    """By line: the first line and the function of the innermost statement around it; and the lines."""
    try:
        stamp = os.stat(file).st_mtime_ns
    except OSError:
        stamp = 0  # a cell of a notebook, whose name is that of its text
    return _parsed(file, stamp)


@functools.lru_cache(maxsize=256)
def _parsed(file: str, _stamp: int) -> tuple[dict[int, tuple[int, str]], list[str]]:
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return {}, lines
    found: dict[int, tuple[int, str]] = {}

    def visit(node: ast.AST, function: str, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = prefix + child.name
                is_class = isinstance(child, ast.ClassDef)
                visit(child, function if is_class else inner, f"{inner}." if is_class else f"{inner}.<locals>.")
                continue
            if isinstance(child, ast.stmt):
                for line in range(child.lineno, (child.end_lineno or child.lineno) + 1):
                    found[line] = (child.lineno, function)
            visit(child, function, prefix)

    visit(tree, "<module>", "")
    return found, lines


def statement_at(file: str, line: int) -> Statement:
    """The statement around a line; one that names the line itself where the file cannot be read."""
    found, lines = _statements(file)
    first, function = found.get(line, (line, ""))
    text = lines[first - 1].strip() if 0 < first <= len(lines) else ""
    return Statement(first, function, text)


def function_at(file: str, function: str) -> tuple[int, str]:
    """The first line and the text of a function by its qualified name; (0, "") where there is none."""
    found, lines = _statements(file)
    inside = [line for line, (_, name) in found.items() if name == function or name.startswith(f"{function}.<locals>.")]
    if not inside or not function or function == "<module>":
        return 0, ""
    first = min(inside)
    while first > 1 and not lines[first - 1].lstrip().startswith(("def ", "async def ")):
        first -= 1
    return first, "".join(lines[first - 1 : max(inside)]).rstrip("\n")


def module_of(file: str) -> str:
    """The dotted name under which a file would be imported, by the packages around it."""
    path = Path(file)
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def is_foreign(file: str, torch: str) -> bool:
    """Is it part of torch (whose directory is given), of Python or of this package?  It has no line of the user's."""
    if file.startswith(("<", _OWN, torch + os.sep)):
        return True
    return file.startswith(_STDLIB) and not file.startswith(_SITES)


_SITES = tuple(dict.fromkeys(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")))
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_OWN = str(Path(__file__).resolve().parents[1]) + os.sep
