"""A `try` around a factorisation that may fail: the graph guards that it does not.

    try:
        factor = torch.linalg.cholesky(a)
    except RuntimeError:
        factor = torch.linalg.cholesky(a + jitter)

Behind a graph there is no handler: what fails in it raises there.  `torch.linalg.cholesky_ex` computes the same, and
says whether it has failed.  Where it has, a guard of the graph fails, and the frame is run again as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from ...source.names import NamesIn, walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import Template, expression
from ...source.tensor_ops import SPECULABLE
from ...source.unknown import STRANGERS
from ..base import Candidate, unsuitable

# What may fail, and says so in another form (`telling` in `traced.py`).
FACTORISATIONS = ("torch.linalg.cholesky", "torch.linalg.inv", "torch.inverse", "torch.linalg.solve")
_PLAIN = (ast.Attribute, ast.BinOp, ast.Constant, ast.Name, ast.Subscript, ast.Tuple, ast.UnaryOp)
_OPTIONS = frozenset({"left", "upper"})
_CAUGHT = frozenset({"RuntimeError", "Exception", "torch.linalg.LinAlgError", "torch._C._LinAlgError"})
_TRIED = Template(
    """
if GM.compiling() and (TRIED := GM.tried(FUNCTION, (OPERANDS,), OPTIONS)) is not None:
    FOUND
    REST
else:
    ORIGINAL
"""
)
_ASSIGN = Template("TARGET = VALUE")
_RETURN = Template("return VALUE")


@dataclass(frozen=True)
class TryCandidate:
    """A `try` that begins with such a call."""

    at: ast.Try
    call: ast.Call

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        assert isinstance(mended, ast.Try)
        value, first = expression("TRIED[0]", self.at), self.at.body[0]
        if isinstance(first, ast.Return):
            found = _RETURN.fill(first, VALUE=value)
        else:
            assert isinstance(first, ast.Assign)
            found = _ASSIGN.fill(first, TARGET=first.targets[0], VALUE=value)
        named = [(ast.Constant(keyword.arg), keyword.value) for keyword in self.call.keywords]
        options = ast.Dict([key for key, _ in named], [each for _, each in named])
        holes: dict[str, Any] = {
            "FUNCTION": self.call.func,
            "OPERANDS": self.call.args,
            "OPTIONS": ast.fix_missing_locations(ast.copy_location(options, self.call)),
            "FOUND": found,
            "REST": [*mended.body[1:], *mended.orelse],
        }
        return _TRIED.fill(self.at, ORIGINAL=mended, **holes)


def match(statement: ast.Try, place: Place, scope: ModuleScope, code: str) -> Candidate | None:
    """The candidate for a `try` whose first statement may fail and whose others cannot; None for any other."""
    first = statement.body[0]
    call = _factorisation(first, place, scope)
    if call is None or place.inside_try or not _is_simple(statement, place, scope):
        return None
    return TryCandidate(statement, call) if unsuitable(place, scope, code) is None else None


def _factorisation(statement: ast.stmt, place: Place, scope: ModuleScope) -> ast.Call | None:
    """The call whose result is bound or returned."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call) | ast.Return(value=ast.Call() as call):
            is_plain = {keyword.arg for keyword in call.keywords} <= _OPTIONS
            is_plain = is_plain and bool(call.args) and not any(isinstance(each, ast.Starred) for each in call.args)
            is_known = is_plain and scope.names_one_of(call.func, FACTORISATIONS, place.function)
            return call if is_known and all(_only_computes(each, scope) for each in call.args) else None
    return None


def _only_computes(node: ast.expr, scope: ModuleScope) -> bool:
    """May the operand be evaluated twice?  It is names, attributes, items, and what torch makes of them."""
    for part in walk(node):
        if isinstance(part, ast.Call):
            method = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if method not in SPECULABLE or scope.imports.qualified(part.func).startswith(STRANGERS):
                return False
        elif not isinstance(part, (*_PLAIN, ast.keyword)):
            return False
    return True


def _is_simple(statement: ast.Try, place: Place, scope: ModuleScope) -> bool:
    """Does one handler catch what the factorisation raises, which nothing else in the `try` may raise?"""
    if len(statement.handlers) != 1 or statement.finalbody:
        return False
    first = statement.body[0]
    known = place.function.flow.bound_before(statement) | NamesIn.code(first).bound
    if not all(_cannot_fail(each, known) for each in statement.body[1:]):
        return False
    caught = statement.handlers[0].type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [] if caught is None else [caught]
    return caught is None or any(scope.imports.qualified(kind) in _CAUGHT for kind in kinds)


def _cannot_fail(statement: ast.stmt, known: Set[str]) -> bool:
    """Does it leave a loop, or give, or bind another name to, constants and names that are bound?"""
    match statement:
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Return(None):
            return True
        case ast.Return(value) | ast.Assign([ast.Name()], value):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            return names <= known and all(isinstance(part, (ast.Constant, ast.Name)) for part in parts)
    return False
