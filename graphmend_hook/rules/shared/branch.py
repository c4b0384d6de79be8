"""What [Where] and [Trap] emit: two functions, one for each side, and what makes one result of them.

Where the test is no tensor, or that cannot be done, the statement runs as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...source.deep_exits import LEFT
from ...source.templates import OWN, Template, constant, expression, name
from .blocks import raising_side, returns

_BRANCH = Template(
    """
if GM.compiling():
    TEST = CONDITION
    OUTCOME = None
    if WHEN:
        PREPARE
        SIDES
        OUTCOME = SELECT(PREDICATE, (THEN, ELSE), (ARGUMENTS,), None)
    if OUTCOME is not None:
        ASSIGN
    else:
        DECIDED
else:
    ORIGINAL
"""
)
_RAISING = Template("if GM.compiling():\n    TEST = CONDITION\n    TRACED\nelse:\n    ORIGINAL")
_SIDES = Template("def THEN(EFFECTS, ARGUMENTS):\n    TAKEN\ndef ELSE(EFFECTS, ARGUMENTS):\n    UNTAKEN")
_RETURN = Template("return OUTCOME[0]")
_PASS = Template("pass")


@dataclass(frozen=True)
class Branch:
    """Both sides of a branch, as the bodies of two functions.

    arguments: the names to pass to both; names: those that the results are to be assigned to, in order.
    raises: one of them may raise, and then gives None.
    """

    arguments: Sequence[str]
    then: list[ast.stmt]
    orelse: list[ast.stmt]
    names: Sequence[str] = ()
    raises: bool = False

    def definitions(self, at: ast.stmt) -> list[ast.stmt]:
        """The functions THEN and ELSE."""
        return _SIDES.fill(at, ARGUMENTS=self.arguments, TAKEN=self.then, UNTAKEN=self.orelse)

    def results(self, at: ast.stmt, first: int = 0) -> list[tuple[ast.expr, ast.expr]]:
        """What is to be assigned to, and what; first: the place of the first such result."""
        texts = [
            f"OUTCOME[{first + place}]" + ("[1]" if each.startswith(LEFT) else "")
            for place, each in enumerate(self.names)
        ]
        results = [expression(text, at) for text in texts]
        return [(name(spelling, at, ast.Store()), value) for spelling, value in zip(self.names, results, strict=True)]

    def assigned(self, at: ast.stmt, first: int = 0) -> list[ast.stmt]:
        """The assignments."""
        return [ast.copy_location(ast.Assign([target], value), at) for target, value in self.results(at, first)]


@dataclass(frozen=True)
class RaisingCandidate:
    """A branch of which one side always raises, and does what may not be done where that is not taken.

    checked: what is traced in the place of a statement that is no ``if``.
    """

    at: ast.stmt
    condition: ast.expr
    checked: ast.stmt | None = None

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        traced = self.checked
        if isinstance(mended, ast.If):
            traced = ast.copy_location(ast.If(spared(mended, "GM.settle(TEST)"), mended.body, mended.orelse), self.at)
        assert traced is not None
        return _RAISING.fill(self.at, CONDITION=self.condition, TRACED=traced, ORIGINAL=self.at)


@dataclass
class BranchCandidate:
    """A statement that decides between two sides.

    settled: the test, where it turns out to be a Python value, or the sides cannot be joined, unless one that raises is
        spared; checked: what then stands in the place of a statement that is no ``if``.
    predicate: what decides, if not the test itself; when: the sides are asked, if not for every tensor.
    prepare: statements before the sides; finish: statements that take the results, if not plain assignments.
    is_exit: it leaves a loop, or a step of one, as `finish` does.
    """

    at: ast.stmt
    condition: ast.expr
    branch: Branch
    settled: str = "TEST"
    checked: ast.stmt | None = None
    predicate: ast.expr | None = None
    when: ast.expr | None = None
    prepare: list[ast.stmt] = field(default_factory=list)
    finish: list[ast.stmt] = field(default_factory=list)
    is_exit: bool = False

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        at, branch = self.at, self.branch
        return _BRANCH.fill(
            at,
            CONDITION=self.condition,
            SELECT=expression("GM.select_returned" if self._returns() else "GM.select", at),
            PREPARE=self.prepare,
            SIDES=branch.definitions(at),
            WHEN=self.when or expression("GM.undecided(TEST)", at),
            PREDICATE=self.predicate or expression("TEST", at),
            ARGUMENTS=branch.arguments,
            ASSIGN=self._assign() or _PASS.fill(at),
            DECIDED=self._decided(mended),
            ORIGINAL=at,
        )

    def _decided(self, mended: ast.stmt) -> ast.stmt:
        if self.checked is not None:
            return self.checked
        assert isinstance(mended, ast.If)
        return ast.copy_location(ast.If(spared(mended, self.settled), mended.body, mended.orelse), self.at)

    def _returns(self) -> bool:
        return isinstance(self.at, ast.If) and returns(self.at) and not self.is_exit

    def _assign(self) -> list[ast.stmt]:
        returns = self._returns()
        return self.branch.assigned(self.at, int(returns)) + (_RETURN.fill(self.at) if returns else self.finish)


def spared(branch: ast.If, settled: str) -> ast.expr:
    """The test of a branch that is traced; a side of it that always raises is spared, if there is one."""
    raises = raising_side(branch)
    if raises is None:
        return expression(settled, branch)
    text = f"{settled} if (SPARED := GM.spared(TEST, RAISES)) is None else SPARED"
    return expression(text, branch, SPARED=f"{OWN}spared", RAISES=constant(raises, branch))
