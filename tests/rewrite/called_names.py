"""The names that rewritten code calls, as the traced halves of the rules declare them, read without torch."""

from __future__ import annotations

import ast
from pathlib import Path

from graphmend_hook import rules


def called_in(file: Path) -> tuple[str, ...]:
    """What the file says in `CALLED`: the tuples there may be unpacked from shorter ones."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CALLED":
            return eval(compile(ast.Expression(node.value), "<called>", "eval"))
    return ()


CALLED = {file: called_in(file) for file in sorted(Path(rules.__path__[0]).rglob("traced_*.py"))}
