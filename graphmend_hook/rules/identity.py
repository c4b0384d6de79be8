"""Does a function care which object a name holds?  ``torch.where`` gives a new tensor, even where nothing changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..analysis.names import root_name, walk
from ..analysis.scopes import Place

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def needs_identity(place: Place, names: frozenset[str]) -> str:
    """The first of `names` (or of their aliases) that is written in place or compared by identity later, else ""."""
    function, statement = place.function.node, place.statement
    aliases = _aliases(function, names)
    last = statement.end_lineno or statement.lineno
    in_loop = any(isinstance(outer, _LOOPS) for outer in place.inside)
    for node in walk(function):
        if isinstance(node, (ast.expr, ast.stmt)) and (in_loop or node.lineno > last):
            for culprit in _touched(node):
                if culprit in aliases:
                    return culprit
    return ""


def _aliases(function: ast.AST, names: frozenset[str]) -> frozenset[str]:
    pairs = [
        (target.id, node.value.id)
        for node in walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    known = set(names)
    while True:
        grown = known | {a for a, b in pairs if b in known} | {b for a, b in pairs if a in known}
        if grown == known:
            return frozenset(known)
        known = grown


def _touched(node: ast.AST) -> Iterator[str]:
    """The names whose objects `node` writes to, or compares by identity; "" for what has none."""
    if isinstance(node, ast.AugAssign):
        yield root_name(node.target)
    elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield root_name(node.value)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
            yield root_name(node.func.value)
        yield from (root_name(keyword.value) for keyword in node.keywords if keyword.arg == "out")
    elif isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        operands = [node.left, *node.comparators]
        if not any(isinstance(operand, ast.Constant) for operand in operands):
            yield from map(root_name, operands)
