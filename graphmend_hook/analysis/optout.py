"""In-source opt-outs: ``# graphmend: off`` on a line of its own at the top, on a ``def``, or on a statement.

``# graphmend: off[defer]`` switches one rule off.  The comment at the top of a module (before its first statement)
holds for the module, on a ``def`` line (or a decorator of it) for that function and what it contains, and on any
other line for the statement there.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

_COMMENT = re.compile(r"#\s*graphmend:\s*off(?![\w-])(?:\[([\w,\s-]*)\])?")
_EVERY = frozenset({"*"})


class OptOuts:
    """The opt-out comments of one module, by line."""

    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self._by_line = _comments(source) if b"graphmend:" in source else {}
        body = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
        first = first_line(body[0]) if body else len(source)
        self._module = frozenset().union(*(rules for line, rules in self._by_line.items() if line < first))

    def cover(self, rule: str, *ranges: tuple[int, int]) -> bool:
        """Is there an opt-out of `rule` for the module, or on a line of one of the `ranges` (1-based, inclusive)?"""
        on_lines = (rules for line, rules in self._by_line.items() if any(a <= line <= b for a, b in ranges))
        return not self._module.union(*on_lines).isdisjoint({rule, *_EVERY})


def first_line(statement: ast.stmt) -> int:
    """The line where `statement` begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _comments(source: bytes) -> dict[int, frozenset[str]]:
    found = {}
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
            names = match[1]
            found[token.start[0]] = frozenset(re.findall(r"[\w-]+", names)) if names is not None else _EVERY
    return found
