"""Conditional expressions on tensor data: the expression is replaced where it stands, so evaluation keeps its order."""

from __future__ import annotations

import ast

from ...analysis.names import enclosed_in, walk
from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint
from ...diagnostics import Refusal
from ...templates import Template, expression, replaced
from ..base import Declined, Ready, unsuitable
from .identity import check_identity
from .lower import Lowering
from .side import Side, valued

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_STATEMENT = Template("if GM.compiling():\n    DEFINE\n    TRACED\nelse:\n    ORIGINAL")
_VALUE = (
    "OUTCOME[0] if GM.undecided(TEST := CONDITION)"
    " and (OUTCOME := GM.select(TEST, (THEN, ELSE), (ARGUMENTS,), None)) is not None else BODY if TEST else ORELSE"
)


def conditional_expression(place: Place, scope: ModuleScope, code: str) -> Ready | Refusal | None:
    """The candidate for the statement at `place` if it holds a conditional expression on tensor data."""
    statement = place.statement
    if not isinstance(statement, _SIMPLE) or not scope.may_hold(b"else", statement):
        return None
    lowering = Lowering(place, scope)
    enclosed = enclosed_in(statement)
    conditionals = (node for node in walk(statement) if isinstance(node, ast.IfExp) and id(node) not in enclosed)
    found = [node for node in conditionals if lowering.taint(node.test) is not Taint.NO]
    refusal = unsuitable(place, scope, code) if found else None
    if refusal or not found:
        return refusal
    if len(found) > 1:
        raise Declined("R18", "the statement has several conditional expressions on tensors; write one a statement")
    (node,) = found
    stored = statement.targets if isinstance(statement, ast.Assign) else []
    check_identity(place, (target.id for target in stored if isinstance(target, ast.Name)))
    condition = lowering.test(node.test)
    branch = valued(node, statement, Side(lowering))
    decided = {"CONDITION": condition, "BODY": node.body, "ORELSE": node.orelse}
    value = expression(_VALUE, node, ARGUMENTS=branch.arguments, **decided)
    traced = replaced(statement, lambda part: value if part is node else None)
    definitions = branch.definitions(statement)
    return Ready(_STATEMENT.fill(statement, DEFINE=definitions, TRACED=traced, ORIGINAL=statement))
