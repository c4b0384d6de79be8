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
from collections.abc import Iterable, Iterator

_COMMENT = re.compile(r"#\s*graphmend:\s*off(?:\[([\w,\s-]*)\]|(?![\w\[-]))")
_MEANT = re.compile(r"#\s*graphmend\s*(?::|off\b).*")
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


def mistakes(source: bytes, rules: Iterable[str]) -> dict[int, str]:
    """Comments that are meant for this package and mean nothing, by line: a word, or the name of a rule, is misspelt.

    rules: the names that there are.
    """
    if b"graphmend" not in source:
        return {}
    known = {*rules, *_EVERY}
    texts = ((line, _MEANT.search(text)) for line, text in _comment_tokens(source))
    meant = {line: match[0] for line, match in texts if match}
    return {line: text for line, text in meant.items() if not (named := _rules_of(text)) or not named <= known}


def _comments(source: bytes) -> dict[int, frozenset[str]]:
    found = ((line, _rules_of(text)) for line, text in _comment_tokens(source))
    return {line: rules for line, rules in found if rules is not None}


def _rules_of(comment: str) -> frozenset[str] | None:
    """The rules that a comment switches off, None for one that switches nothing."""
    match = _COMMENT.search(comment)
    if match is None:
        return None
    return _EVERY if match[1] is None else frozenset(re.findall(r"[\w-]+", match[1]))


def _comment_tokens(source: bytes) -> Iterator[tuple[int, str]]:
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
