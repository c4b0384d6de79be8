"""The one way to build AST: small source templates with named holes.

Names of the rewritten code are not identifiers, so they cannot meet a name of the user's; they do not start with two
underscores, which a class body would mangle.  The injected global starts with one, so that ``import *`` skips it.
"""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
RUNTIME = "_@graphmend"  # the only injected global: the module graphmend_hook.runtime
_SPELLING = {"GM": RUNTIME, "TARGET": "@gm_target", "VALUES": "@gm_values"}
DELIVERY_ARGUMENTS = (_SPELLING["TARGET"], _SPELLING["VALUES"])


class Template:
    """Statements with holes: an upper-case name stands for what `fill` puts there."""

    def __init__(self, source: str) -> None:
        self._source = source

    def fill(self, at: ast.stmt | ast.expr, **holes: ast.AST) -> list[ast.stmt]:
        """A fresh copy with every hole filled, its own nodes placed where the statement `at` stands."""
        filler = _Filler(at, holes)
        return [filler.visit(statement) for statement in ast.parse(self._source).body]  # cheaper than a deep copy


class _Filler(ast.NodeTransformer):
    def __init__(self, at: ast.stmt | ast.expr, holes: dict[str, ast.AST]) -> None:
        self._at = at
        self._holes = holes

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if hasattr(node, "lineno"):
            _place(node, self._at)
        return super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Name) and isinstance(self._holes.get(node.value.id), ast.stmt):
            return self._holes[node.value.id]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._holes:
            return self._holes[node.id]
        node.id = _SPELLING.get(node.id, node.id)
        return _place(node, self._at)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = _SPELLING.get(node.arg, node.arg)
        return _place(node, self._at)


def _place(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Put a node of ours on the first line of `at`.

    With its last line too, the line events of a statement of several lines would differ from the original's.
    """
    ast.copy_location(node, at)
    node.end_lineno, node.end_col_offset = node.lineno, node.col_offset  # type: ignore[attr-defined]
    return node


def value_at(index: int, where: ast.expr) -> ast.expr:
    """``VALUES[index]``, placed where the expression `where` stands."""
    node = ast.Subscript(ast.Name(_SPELLING["VALUES"], ast.Load()), ast.Constant(index), ast.Load())
    for part in (node, node.value, node.slice):
        _place(part, where)
    return node


def target_at(where: ast.expr) -> ast.expr:
    """``TARGET``, placed where the expression `where` stands."""
    return _place(ast.Name(_SPELLING["TARGET"], ast.Load()), where)


def runtime_import(at: ast.stmt) -> ast.stmt:
    """``import graphmend_hook.runtime as _@graphmend``, placed where `at` stands."""
    node = ast.Import([ast.alias("graphmend_hook.runtime", RUNTIME)])
    _place(node.names[0], at)
    return _place(node, at)
