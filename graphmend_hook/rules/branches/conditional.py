"""Conditional expressions on tensor data: the expression is replaced where it stands, so evaluation keeps its order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint
from ...diagnostics import Refusal
from ...templates import Template, expression, name, replaced
from ..declined import Declined
from ..surroundings import unsuitable
from .branch import Branch
from .identity import check_identity
from .lower import Lowering
from .side import Side, valued

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STATEMENT = Template("if GM.compiling():\n    DEFINE\n    TRACED\nelse:\n    ORIGINAL")
_VALUE = (
    "OUTCOME_[0] if GM.undecided(TEST_) and (STORED := GM.select(TEST, (THEN, ELSE), ARGUMENTS, None))"
    " is not None else BODY if TEST else ORELSE"
)


class ConditionalCandidate:
    """A simple statement with a conditional expression, and the branch that stands for it."""

    def __init__(self, statement: ast.stmt, node: ast.IfExp, condition: ast.expr, branch: Branch) -> None:
        self._statement, self._node, self._condition, self._branch = statement, node, condition, branch

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        at, node = self._statement, self._node
        value = expression(
            _VALUE,
            node,
            OUTCOME_=name("OUTCOME", node),
            STORED=name("OUTCOME", node, ast.Store()),
            TEST_=ast.copy_location(ast.NamedExpr(name("TEST", node, ast.Store()), self._condition), node),
            BODY=node.body,
            ORELSE=node.orelse,
            ARGUMENTS=self._branch.given(at),
        )
        traced = replaced(at, lambda part: value if part is node else None)
        return _STATEMENT.fill(at, DEFINE=self._branch.definitions(at), TRACED=traced, ORIGINAL=at)


def conditional_expression(place: Place, scope: ModuleScope, code: str) -> ConditionalCandidate | Refusal | None:
    """The candidate for the statement at `place` if it holds a conditional expression on tensor data."""
    statement = place.statement
    if not isinstance(statement, _SIMPLE) or not scope.may_hold_conditional(statement):
        return None
    lowering = Lowering(place, scope)
    found = [node for node in _conditionals(statement) if lowering.taint(node.test) is not Taint.NO]
    refusal = unsuitable(place, scope, code) if found else None
    if refusal or not found:
        return refusal
    if len(found) > 1:
        raise Declined("R18", "the statement has several conditional expressions on tensors; write one a statement")
    (node,) = found
    stored = statement.targets if isinstance(statement, ast.Assign) else []
    check_identity(place, (target.id for target in stored if isinstance(target, ast.Name)))
    condition = lowering.test(node.test)
    return ConditionalCandidate(statement, node, condition, valued(node, statement, Side(lowering)))


def _conditionals(root: ast.AST) -> Iterator[ast.IfExp]:
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.IfExp):
            yield node
        stack += ast.iter_child_nodes(node)
