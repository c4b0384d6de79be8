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
from dataclasses import dataclass
from typing import Any

from ...source.names import walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import Template, constant, expression
from ..base import Candidate, unsuitable

# By the function, the one of torch.linalg that tells instead of failing; both give what is sought first.
TELLING = {
    "torch.linalg.cholesky": "cholesky_ex",
    "torch.linalg.inv": "inv_ex",
    "torch.inverse": "inv_ex",
    "torch.linalg.solve": "solve_ex",
}
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
    function: str

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
            "FUNCTION": constant(self.function, self.call),
            "OPERANDS": self.call.args,
            "OPTIONS": ast.fix_missing_locations(ast.copy_location(options, self.call)),
            "FOUND": found,
            "REST": [*mended.body[1:], *mended.orelse],
        }
        return _TRIED.fill(self.at, ORIGINAL=mended, **holes)


def match(statement: ast.Try, place: Place, scope: ModuleScope, code: str) -> Candidate | None:
    """The candidate for a `try` whose first statement may fail and whose others cannot; None for any other."""
    call = _factorisation(statement.body[0], scope)
    if call is None or place.inside_try or not _is_simple(statement, scope):
        return None
    if unsuitable(place, scope, code) is not None:
        return None
    return TryCandidate(statement, call, TELLING[scope.imports.qualified(call.func)])


def _factorisation(statement: ast.stmt, scope: ModuleScope) -> ast.Call | None:
    """The call whose result is bound or returned."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call) | ast.Return(value=ast.Call() as call):
            named = {keyword.arg for keyword in call.keywords}
            is_plain = named.isdisjoint({None, "out"}) and not any(isinstance(each, ast.Starred) for each in call.args)
            return call if is_plain and scope.imports.qualified(call.func) in TELLING else None
    return None


def _is_simple(statement: ast.Try, scope: ModuleScope) -> bool:
    """Does one handler catch what the factorisation raises, which nothing else in the `try` may raise?"""
    if len(statement.handlers) != 1 or statement.finalbody or not _cannot_fail(statement.body[1:]):
        return False
    caught = statement.handlers[0].type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [] if caught is None else [caught]
    return caught is None or any(scope.imports.qualified(kind) in _CAUGHT for kind in kinds)


def _cannot_fail(block: list[ast.stmt]) -> bool:
    plain = (ast.Assign, ast.Return, ast.Pass, ast.Name, ast.Constant, ast.Tuple, ast.Break, ast.Continue)
    return all(isinstance(node, plain) for node in walk(*block))
