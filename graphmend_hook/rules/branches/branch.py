"""What [Where], [Trap] and [Cond] emit: two functions, one for each side, and what makes one result of them.

Where the test is no tensor, or that cannot be done, the statement runs as it was written.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field

from ...templates import Template, expression, name
from .sides import Branch

_BRANCH = Template(
    """
if GM.compiling():
    TEST = CONDITION
    OUTCOME = None
    if WHEN:
        DEFINE
        OUTCOME = JOIN(PREDICATE, (THEN, ELSE), ARGUMENTS, None)
    if OUTCOME is not None:
        ASSIGN
    else:
        DECIDED
else:
    ORIGINAL
"""
)
_STORE = Template("if OUTCOME[INDEX] is not CURRENT:\n    SLOT = OUTCOME[INDEX]")
_RETURN = Template("return OUTCOME[0]")
_PASS = Template("pass")


@dataclass
class BranchCandidate:
    """A statement that both rules emit in the same way.

    original: the statement as it stands, free of what other rules do to the statements inside.
    decided: what runs while tracing if the test is a Python value after all, or the sides cannot be joined.
    predicate: what decides, if not the test itself; known: a further condition of the rewrite.
    join: what of the runtime makes one result of the sides.
    prepare: statements before the sides; finish: statements that take the results, if not plain assignments.
    """

    at: ast.stmt
    original: list[ast.stmt]
    condition: ast.expr
    branch: Branch
    decided: list[ast.stmt]
    returns: bool = False
    predicate: ast.expr | None = None
    known: ast.expr | None = None
    join: str = "select"
    prepare: list[ast.stmt] = field(default_factory=list)
    finish: list[ast.stmt] = field(default_factory=list)

    def emit(self) -> list[ast.stmt]:
        at = self.at
        known = {"KNOWN": self.known} if self.known else {}
        return _BRANCH.fill(
            at,
            CONDITION=self.condition,
            JOIN=expression(f"GM.{self.join}", at),
            DEFINE=self.prepare + self.branch.definitions,
            WHEN=expression("GM.undecided(TEST) and KNOWN" if self.known else "GM.undecided(TEST)", at, **known),
            PREDICATE=self.predicate or name("TEST", at),
            ASSIGN=self._assign() or _PASS.fill(at),
            DECIDED=self.decided,
            ORIGINAL=self.original,
            **self.branch.holes(at),
        )

    def _assign(self) -> list[ast.stmt]:
        if self.returns:
            return _RETURN.fill(self.at)
        statements: list[ast.stmt] = []
        for index, target in enumerate(self.branch.targets()):
            value = expression(f"OUTCOME[{index}]", self.at)
            if isinstance(target, ast.Name) and target.id in self.branch.in_place:
                written = expression("GM.written(A, B)", self.at, A=name(target.id, self.at), B=value)
                statements.append(ast.copy_location(ast.Assign([target], written), self.at))
            elif isinstance(target, (ast.Attribute, ast.Subscript)):
                current = copy.copy(target)
                current.ctx = ast.Load()
                number = expression(str(index), self.at)
                statements += _STORE.fill(self.at, INDEX=number, CURRENT=current, SLOT=target)
            else:
                statements.append(ast.copy_location(ast.Assign([target], value), self.at))
        return statements + self.finish


def decided(statement: ast.If, test: str = "TEST") -> ast.If:
    """The ``if`` over the value that its test already has, with the very lists that other rules edit."""
    return ast.copy_location(ast.If(expression(test, statement), statement.body, statement.orelse), statement)


def pristine(statement: ast.stmt) -> ast.stmt:
    """A copy of a compound statement whose blocks are its own; what is in them is shared."""
    copied = statement
    for name_ in ("body", "orelse", "finalbody"):
        block = getattr(statement, name_, None)
        if isinstance(block, list):
            if copied is statement:
                copied = ast.copy_location(type(statement)(**dict(ast.iter_fields(statement))), statement)
            setattr(copied, name_, [pristine(inner) for inner in block])
    return copied
