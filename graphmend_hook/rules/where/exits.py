"""Exits that data decides: ``break`` and ``continue`` under a test of data, in a loop that Dynamo unrolls.

What follows the exit, in its step and in all later ones, is a side that is taken where the loop goes on.  A step that
eager does not make changes nothing: each name that the loop binds is selected.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...diagnostics import Refusal
from ...source.names import NamesIn, walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, Template, constant, expression, name, replaced
from ..base import Declined
from ..shared.blocks import has_effect, leaves_loop
from ..shared.branch import BranchCandidate
from ..shared.codes import BOUND_ON_ONE_SIDE, OTHER_STATEMENT
from ..shared.identity import check_identity
from ..shared.lower import Lowering, of_data
from ..shared.side import Side, assigning, branch_of
from .codes import CAUGHT

_LEAVE = Template("DONE = GM.truth(TEST)\ncontinue")
_CONTINUE = Template("continue")
_LOOP = Template("if GM.compiling():\n    DONE = False\n    LOOP\nelse:\n    ORIGINAL")
_STEP = Template(
    """
if DONE is not False:
    SIDES
    OUTCOME = GM.select(DONE, (THEN, ELSE), (ARGUMENTS,), None)
    GM.expect_step(OUTCOME)
    ASSIGN
    continue
"""
)
_ASSIGN = Template("TARGET = VALUE")
_DONE = Template("DONE = GM.truth_like(TEST, DONE)")


@dataclass(frozen=True)
class Exit:
    """``if test: ...; break`` in the body of a loop.

    before, after: the statements of the step before it and behind it; inside: those before the ``break``.
    """

    place: Place
    loop: ast.For
    before: Sequence[ast.stmt]
    after: Sequence[ast.stmt]

    @property
    def inside(self) -> list[ast.stmt]:
        assert isinstance(self.place.statement, ast.If)
        return self.place.statement.body[:-1]

    @property
    def done(self) -> str:
        """The name that says whether the loop has been left: False, or a tensor () of bool."""
        return f"{OWN}done{self.loop.lineno}"

    @property
    def needed(self) -> frozenset[str]:
        """The names that may be read after the step, in the next one or behind the loop."""
        flow, last = self.place.function.flow, [self.place.statement, *self.after][-1]
        return flow.needed_after(last) | flow.needed_after(self.loop)


@dataclass(frozen=True)
class LoopCandidate:
    """A loop with an exit that data decides: each step begins with what stands for it once the loop may have ended."""

    at: ast.For
    done: str
    step: list[ast.stmt]

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        assert isinstance(mended, ast.For)
        loop = ast.For(mended.target, mended.iter, [*self.step, *map(self._leaving, mended.body)], [])
        return _LOOP.fill(self.at, DONE=self.done, LOOP=ast.copy_location(loop, self.at), ORIGINAL=self.at)

    def _leaving(self, statement: ast.stmt) -> ast.stmt:
        """The statement, in which the exit may be taken: it asks `never` where the loop is left as it was written."""

        def asked(node: ast.AST) -> ast.AST | None:
            match node:
                case ast.Call(ast.Attribute(attr="never"), [ast.Constant(line)]) if line == self.at.lineno:
                    return expression("GM.may_leave()", node)
            return None

        return replaced(statement, asked)


def exit_at(place: Place) -> Exit | None:
    """The exit that the statement at `place` is, if it is one."""
    statement, loop = place.statement, place.inside[-1] if place.inside else None
    if not isinstance(loop, ast.For) or place.block is not loop.body or not isinstance(statement, ast.If):
        return None
    if statement.orelse or not statement.body or not isinstance(statement.body[-1], (ast.Break, ast.Continue)):
        return None
    return Exit(place, loop, loop.body[: place.index], loop.body[place.index + 1 :])


def exit_of(place: Place) -> Exit | None:
    """The exit by ``break`` of the loop at `place`, if it has one that may be mended."""
    loop = place.statement
    if not isinstance(loop, ast.For):
        return None
    for index, statement in enumerate(loop.body):
        if isinstance(statement, ast.If) and statement.body and isinstance(statement.body[-1], ast.Break):
            return exit_at(replace(place, block=loop.body, index=index, inside=(*place.inside, loop)))
    return None


def branch_at(found: Exit, lowering: Lowering) -> BranchCandidate:
    """What stands for the exit, and for the rest of its step."""
    statement, place = found.place.statement, found.place
    assert isinstance(statement, ast.If)
    is_break = isinstance(statement.body[-1], ast.Break)
    if is_break:
        _check(found)
        _step(found, Lowering(replace(place, index=0), lowering.scope))
    condition = lowering.test(statement.test)
    branch = assigning(statement, found.inside, found.after, Side(lowering), found.needed)
    check_identity(place, branch.names)
    if place.inside_try and has_effect(found.inside, found.after):
        raise Declined(CAUGHT, "a handler in the function could catch what a side raises or logs")
    test = expression("TEST", statement)
    finish = _LEAVE.fill(statement, DONE=found.done, TEST=test) if is_break else _CONTINUE.fill(statement)
    when = expression("GM.undecided(TEST)", statement)
    if is_break:
        when = expression(
            "GM.undecided(TEST) and GM.never(LINE)", statement, LINE=constant(found.loop.lineno, statement)
        )
    return BranchCandidate(statement, condition, branch, "GM.settle(TEST)", when=when, finish=finish)


def loop_at(place: Place, scope: ModuleScope, code: str) -> LoopCandidate | None:
    """What stands for the loop at `place`; None if no data may end it, or its exit is declined."""
    found = exit_of(place)
    if found is None:
        return None
    statement = found.place.statement
    assert isinstance(statement, ast.If)
    lowering = of_data(statement.test, found.place, scope, code)
    if lowering is None or isinstance(lowering, Refusal):
        return None
    try:
        branch_at(found, lowering)
        step = _step(found, Lowering(replace(found.place, index=0), scope))
    except Declined:
        return None  # the exit's own refusal says so
    return LoopCandidate(found.loop, found.done, step)


def _check(found: Exit) -> None:
    """Raise Declined if the loop can be left in another way, or the exit tells where it was."""
    loop, statement = found.loop, found.place.statement
    others = [node for node in (*found.before, *found.after, *found.inside) if leaves_loop(node)]
    if loop.orelse or others or any(isinstance(node, ast.Return) for node in walk(*loop.body)):
        raise Declined(OTHER_STATEMENT, "the loop can be left in several ways")
    known = found.place.function.flow.bound_before(loop.body[0])
    targets = NamesIn.code(loop.target).bound
    for spelling in sorted(NamesIn.code(*loop.body).bound | targets):
        if spelling in found.needed and (spelling in targets or spelling not in known):
            text = f"`{spelling}`, which says where the loop ended, is read behind it"
            raise Declined(BOUND_ON_ONE_SIDE, text)
    assert isinstance(statement, ast.If)


def _step(found: Exit, lowering: Lowering) -> list[ast.stmt]:
    """A step once the loop may have ended: nothing, or the step if it has not."""
    at = found.place.statement
    assert isinstance(at, ast.If)
    done = name(found.done, at)
    around = Side(lowering)
    rests, step = around.inner(), around.inner()
    names = sorted(NamesIn.code(*found.loop.body).bound & found.needed)
    step.run(found.before)
    step.body += _DONE.fill(at, DONE=found.done, TEST=step.test(at.test))
    inside = found.inside or [ast.copy_location(ast.Pass(), at)]
    step.run([ast.copy_location(ast.If(done, inside, [*found.after]), at)])
    for side in (rests, step):
        side.reads.add(found.done)
        side.give([*(side.value(name(each, at)) for each in names), done], at)
    branch = branch_of((rests, step), [*names, found.done])
    assigned = [_ASSIGN.fill(at, TARGET=target, VALUE=value)[0] for target, value in branch.results(at)]
    return _STEP.fill(at, DONE=found.done, SIDES=branch.definitions(at), ARGUMENTS=branch.arguments, ASSIGN=assigned)
