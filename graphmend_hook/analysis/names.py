"""Which import a name of a module is bound to: ``from warnings import warn as w`` makes ``w`` ``warnings.warn``."""

from __future__ import annotations

import ast
from collections.abc import Iterable


class Imports:
    """Names bound by the import statements of a module, wherever they stand in it."""

    def __init__(self) -> None:
        self._bound: dict[str, str] = {}

    def add(self, statement: ast.stmt) -> None:
        """Take note of `statement` if it is an import."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._bound[name] = alias.name if alias.asname else name
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                self._bound[alias.asname or alias.name] = f"{statement.module}.{alias.name}"

    def qualified(self, expression: ast.expr) -> str:
        """The dotted name that a name or attribute chain stands for, "" for any other expression.

        A name that no import binds stands for itself: a builtin, or something of the module's own.
        """
        if isinstance(expression, ast.Name):
            return self._bound.get(expression.id, expression.id)
        if isinstance(expression, ast.Attribute):
            base = self.qualified(expression.value)
            return f"{base}.{expression.attr}" if base else ""
        return ""


def uses_any_name(function: ast.AST, names: Iterable[str]) -> bool:
    """Does the body of `function` (nested functions included) read one of the bare `names`?"""
    wanted = frozenset(names)
    return any(isinstance(node, ast.Name) and node.id in wanted for node in ast.walk(function))
