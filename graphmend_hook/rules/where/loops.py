"""``while`` loops that data ends: one operation of the graph, `torch.while_loop`, of what the body binds.

The test and the body become functions of the names that go round, as they are written; a whole number that only counts
goes round as a tensor, and is a number again behind the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...diagnostics import Refusal
from ...source.names import NamesIn, walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, Template, constant, expression, name
from ..base import Declined
from ..shared.blocks import leaves_loop
from ..shared.lower import Lowering, of_data
from ..shared.side import Side
from .codes import LOOP_KEPT

_LOOP = Template(
    """
if GM.compiling():
    TEST = CONDITION
    OUTCOME = None
    if GM.undecided(TEST):
        GOES
        STEP
        OUTCOME = GM.loop(THEN, ELSE, (CARRIED,), COUNTS)
    if OUTCOME is not None:
        ASSIGN
    else:
        FIRST = True
        while GM.settle(TEST) if FIRST else AGAIN:
            FIRST = False
            MENDED
else:
    ORIGINAL
"""
)
_FUNCTIONS = {spelling: Template(f"def {spelling}(PARAMETERS):\n    STATEMENTS") for spelling in ("THEN", "ELSE")}
_RETURN = Template("return GM.truth(TEST)")
_GIVE = Template("return (RESULTS,)")
# What makes functions or lists, or binds a name in an expression.
_OTHER = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.ListComp, ast.DictComp, ast.GeneratorExp)
_PLAIN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass)


@dataclass(frozen=True)
class WhileCandidate:
    """A loop of which the test and the body are functions of the names that go round.

    condition: the test before the first step; again: before each.
    carried: those names; read: the others that the loop reads, which are handed to the functions as they are.
    """

    at: ast.While
    condition: ast.expr
    again: ast.expr
    carried: list[str]
    read: list[str]

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        at = self.at
        assert isinstance(mended, ast.While)
        body = [_calculated(each) for each in at.body]
        goes, step = _RETURN.fill(at, TEST=self.again), [*body, *_GIVE.fill(at, RESULTS=[*self._results()])]
        targets = [
            ast.copy_location(ast.Assign([name(each, at, ast.Store())], expression(f"OUTCOME[{place}]", at)), at)
            for place, each in enumerate(self.carried)
        ]
        return _LOOP.fill(
            at,
            CONDITION=self.condition,
            GOES=self._function("THEN", goes),
            STEP=self._function("ELSE", step),
            CARRIED=[name(each, at) for each in self.carried],
            COUNTS=constant(tuple(place for place, each in enumerate(self.carried) if each in self._augmented()), at),
            ASSIGN=targets,
            MENDED=mended.body,
            AGAIN=mended.test,
            FIRST=f"{OWN}first",
            ORIGINAL=at,
        )

    def _function(self, spelling: str, body: list[ast.stmt]) -> list[ast.stmt]:
        parameters = [*self.carried, *self.read]
        (made,) = _FUNCTIONS[spelling].fill(self.at, PARAMETERS=parameters, STATEMENTS=body)
        assert isinstance(made, ast.FunctionDef)
        made.args.defaults = [name(each, self.at) for each in self.read]
        return [made]

    def _augmented(self) -> set[str]:
        """The names with ``+=`` and its kin: whole numbers, since of a tensor the memory would be written to."""
        targets = (each.target for each in self.at.body if isinstance(each, ast.AugAssign))
        return {target.id for target in targets if isinstance(target, ast.Name)}

    def _results(self) -> Iterator[ast.expr]:
        """What goes round next; what is another name of a tensor goes round as a copy of it."""
        renamed = {
            target.id
            for statement in self.at.body
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for each in self.carried:
            yield expression("GM.copied(A)" if each in renamed else "A", self.at, A=name(each, self.at))


def _calculated(statement: ast.stmt) -> ast.stmt:
    """``n += 1`` as ``n = n + 1``."""
    match statement:
        case ast.AugAssign(ast.Name() as target, operation, value):
            value = ast.copy_location(ast.BinOp(name(target.id, statement), operation, value), statement)
            return ast.copy_location(ast.Assign([target], value), statement)
    return statement


def while_at(place: Place, scope: ModuleScope, code: str) -> WhileCandidate | Refusal | None:
    """The candidate for a ``while`` on data at `place`; None where nothing speaks for that."""
    loop = place.statement
    assert isinstance(loop, ast.While)
    lowering = of_data(loop.test, place, scope, code)
    return _candidate(loop, place, lowering) if isinstance(lowering, Lowering) and not lowering.is_open else None


def _candidate(loop: ast.While, place: Place, lowering: Lowering) -> WhileCandidate:
    if loop.orelse or not all(isinstance(each, _PLAIN) for each in loop.body) or any(map(leaves_loop, loop.body)):
        raise Declined((LOOP_KEPT,), "the body does more than to compute and assign")
    if any(isinstance(node, _OTHER) for part in (loop.test, *loop.body) for node in walk(part)):
        raise Declined((LOOP_KEPT,), "the test or the body makes functions or lists, or binds a name in an expression")
    if any(isinstance(getattr(node, "op", None), ast.Or) for node in walk(loop.test)):
        raise Declined((LOOP_KEPT,), "the test has an `or`: a count may decide it in some steps, and data in others")
    flow, names = place.function.flow, NamesIn.code(*loop.body)
    before, behind = flow.bound_before(loop), flow.needed_after(loop)
    condition, again = lowering.test(loop.test), _each_time(loop.test, lowering)
    reads = NamesIn.code(ast.copy_location(ast.Expr(loop.test), loop)).read
    if not names.bound.isdisjoint(flow.captured) or not names.bound.isdisjoint(behind - before):
        raise Declined((LOOP_KEPT,), "the body binds what is not bound before, or what other functions see")
    carried = sorted(names.bound & before)
    if not carried:
        raise Declined((LOOP_KEPT,), "nothing goes round")
    read = sorted((names.read | reads) & place.function.hidden - names.bound)
    if not {*read} <= before:
        raise Declined((LOOP_KEPT,), "a name may be unbound")
    return WhileCandidate(loop, condition, again, carried, read)


def _each_time(test: ast.expr, lowering: Lowering) -> ast.expr:
    """The test as one value of the graph: what Python might not look at is evaluated each time, if it cannot fail."""
    if not isinstance(test, ast.BoolOp):
        return lowering.test(test)
    joined = lowering.test(test.values[0])
    for operand in test.values[1:]:
        side = Side(lowering)
        right = side.judged(operand, lowering.test(operand, side))
        joined = expression("GM.both(A, B)", test, A=joined, B=right)
    return joined
