"""Exits that data decides: ``break``, ``return`` and ``continue`` under a test of data, in a loop that Dynamo unrolls.

What follows the exit, in its step and in all later ones, is a side that is taken where the loop goes on.  A step that
eager does not make changes nothing: each name that the loop binds is selected, and so is what a ``return`` gives.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...diagnostics import Refusal
from ...source.names import NamesIn, unpacks, walk
from ...source.scopes import Function, ModuleScope, Place
from ...source.templates import OWN, Template, constant, expression, name, replaced
from ..base import Declined
from ..shared.blocks import following, has_effect, leaves_loop
from ..shared.branch import BranchCandidate
from ..shared.codes import BOUND_ON_ONE_SIDE, LEAVES_EARLY, OTHER_STATEMENT
from ..shared.identity import check_identity
from ..shared.lower import Lowering, of_data
from ..shared.side import Side, assigning, branch_of
from .codes import CAUGHT

_LEAVE = Template("DONE = GM.truth(TEST)\ncontinue")
_CONTINUE = Template("continue")
_LOOP = Template("if GM.compiling():\n    KEEP\n    DONE = False\n    LOOP\n    AFTER\nelse:\n    ORIGINAL")
_MAKING_ITERATORS = frozenset({"enumerate", "reversed", "zip"})
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
_AFTER = Template(
    """
if DONE is not False:
    SIDES
    OUTCOME = GM.select_returned(DONE, (THEN, ELSE), (ARGUMENTS,), None)
    GM.expect_step(OUTCOME)
    return OUTCOME[0]
"""
)
_ASSIGN = Template("TARGET = VALUE")
_DONE = Template("DONE = GM.truth_like(TEST, DONE)")


@dataclass(frozen=True)
class Exit:
    """``if test: ...; break`` in the body of a loop, or with another statement that leaves its step.

    before, rest: the statements of the step before it and behind it.
    """

    place: Place
    loop: ast.For
    before: Sequence[ast.stmt]
    rest: Sequence[ast.stmt]

    @property
    def statement(self) -> ast.If:
        assert isinstance(self.place.statement, ast.If)
        return self.place.statement

    @property
    def leaving(self) -> ast.stmt:
        return self.statement.body[-1]

    @property
    def inside(self) -> list[ast.stmt]:
        """What is done where the loop is left, or the step."""
        return [*self.statement.body[:-1], *self._returned]

    @property
    def after(self) -> list[ast.stmt]:
        """What is done where it is not."""
        return [*self._returned, *self.rest]

    @property
    def _returned(self) -> list[ast.stmt]:
        """The value of a ``return`` is evaluated in any case, so that there is one to be selected from."""
        if not isinstance(self.leaving, ast.Return):
            return []
        value = self.leaving.value or constant(None, self.leaving)
        return _ASSIGN.fill(self.leaving, TARGET=name(self.returned, self.leaving, ast.Store()), VALUE=value)

    @property
    def done(self) -> str:
        """The name that says whether the loop has been left: False, or a tensor () of bool."""
        return f"{OWN}done{self.loop.lineno}"

    @property
    def returned(self) -> str:
        """The name that holds what a ``return`` gives."""
        return f"{OWN}returned{self.loop.lineno}"

    @property
    def needed(self) -> frozenset[str]:
        """The names that may be read after the step, in the next one or behind the loop."""
        flow, last = self.place.function.flow, [self.statement, *self.rest][-1]
        of_return = {self.returned} if isinstance(self.leaving, ast.Return) else set()
        return flow.needed_after(last) | flow.needed_after(self.loop) | of_return


@dataclass(frozen=True)
class LoopCandidate:
    """A loop with an exit that data decides: each step begins with what stands for it once the loop may have ended.

    after: what stands for all that follows the loop, if the function may have returned in it.
    """

    at: ast.For
    done: str
    step: list[ast.stmt]
    after: list[ast.stmt]
    scope: ModuleScope
    function: Function

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        assert isinstance(mended, ast.For)
        kept, iterated = self._iterated()
        names = [name(f"{self.done}_{number}", self.at) for number in range(len(kept))]
        keep = [
            _ASSIGN.fill(self.at, TARGET=name(each.id, self.at, ast.Store()), VALUE=value)[0]
            for each, value in zip(names, kept, strict=True)
        ]
        body = [*self.step, *(self._leaving(statement, names) for statement in mended.body)]
        loop = ast.copy_location(ast.For(mended.target, iterated, body, []), self.at)
        return _LOOP.fill(self.at, KEEP=keep, DONE=self.done, LOOP=loop, AFTER=self.after, ORIGINAL=self.at)

    def _iterated(self) -> tuple[list[ast.expr], ast.expr]:
        """What the loop goes over, each evaluated once, and with the names of these what is iterated."""
        match self.at.iter:
            case ast.Call(function, arguments, keywords) as call if self.scope.names_one_of(
                function, _MAKING_ITERATORS, self.function
            ) and not unpacks(call):
                names: list[ast.expr] = [name(f"{self.done}_{number}", call) for number in range(len(arguments))]
                return arguments, ast.copy_location(ast.Call(function, names, keywords), call)
        return [self.at.iter], name(f"{self.done}_0", self.at)

    def _leaving(self, statement: ast.stmt, iterated: list[ast.Name]) -> ast.stmt:
        """The statement, in which the exit may be taken: it asks `never` where the loop is left as it was written."""

        def asked(node: ast.AST) -> ast.AST | None:
            match node:
                case ast.Call(ast.Attribute(attr="never"), [ast.Constant(line)]) if line == self.at.lineno:
                    return expression("GM.may_leave((ITERATED,))", node, ITERATED=iterated)
            return None

        return replaced(statement, asked)


def exit_at(place: Place) -> Exit | None:
    """The exit that the statement at `place` is, if it is one."""
    statement, loop = place.statement, place.inside[-1] if place.inside else None
    if not isinstance(loop, ast.For) or place.block is not loop.body or not isinstance(statement, ast.If):
        return None
    if statement.orelse or not isinstance(statement.body[-1], (ast.Break, ast.Continue, ast.Return)):
        return None
    return Exit(place, loop, loop.body[: place.index], loop.body[place.index + 1 :])


def exit_of(place: Place) -> Exit | None:
    """The exit of the loop at `place`, by ``break`` or ``return``, if it has one that may be mended."""
    loop = place.statement
    if not isinstance(loop, ast.For):
        return None
    for index, statement in enumerate(loop.body):
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Break, ast.Return)):
            return exit_at(replace(place, block=loop.body, index=index, inside=(*place.inside, loop)))
    return None


def branch_at(found: Exit, lowering: Lowering) -> BranchCandidate:
    """What stands for the exit, and for the rest of its step."""
    statement, place = found.statement, found.place
    of_step = isinstance(found.leaving, ast.Continue)
    if not of_step:
        _check(found)
        _step(found, Lowering(replace(place, index=0), lowering.scope))
        _after(found, lowering.scope)
    condition = lowering.test(statement.test)
    branch = assigning(statement, found.inside, found.after, Side(lowering), found.needed)
    check_identity(place, branch.names)
    if place.inside_try and has_effect(found.inside, found.after):
        raise Declined(CAUGHT, "a handler in the function could catch what a side raises or logs")
    if of_step:
        finish, when = _CONTINUE.fill(statement), expression("GM.undecided(TEST) and GM.may_leave(())", statement)
    else:
        line = constant(found.loop.lineno, statement)
        finish = _LEAVE.fill(statement, DONE=found.done, TEST=expression("TEST", statement))
        when = expression("GM.undecided(TEST) and GM.never(LINE)", statement, LINE=line)
    return BranchCandidate(statement, condition, branch, "GM.settle(TEST)", when=when, finish=finish, is_exit=True)


def loop_at(place: Place, scope: ModuleScope, code: str) -> LoopCandidate | None:
    """What stands for the loop at `place`; None if no data may end it, or its exit is declined."""
    found = exit_of(place)
    if found is None:
        return None
    lowering = of_data(found.statement.test, found.place, scope, code)
    if lowering is None or isinstance(lowering, Refusal):
        return None
    try:
        branch_at(found, lowering)
        step, after = _step(found, Lowering(replace(found.place, index=0), scope)), _after(found, scope)
    except Declined:
        return None  # the exit's own refusal says so
    return LoopCandidate(found.loop, found.done, step, after, scope, place.function)


def _check(found: Exit) -> None:
    """Raise Declined if the loop can be left in another way, or the exit tells where it was."""
    loop, statements = found.loop, (*found.before, *found.rest, *found.statement.body[:-1])
    leave = any(map(leaves_loop, statements)) or any(isinstance(node, ast.Return) for node in walk(*statements))
    if loop.orelse or leave:
        raise Declined(OTHER_STATEMENT, "the loop can be left in several ways")
    flow = found.place.function.flow
    known, targets = flow.bound_before(loop.body[0]), NamesIn.code(loop.target).bound
    shared = (NamesIn.code(*loop.body).bound | targets) & flow.captured
    if shared:
        raise Declined(LEAVES_EARLY, f"the loop assigns to `{min(shared)}`, which other functions can see")
    for spelling in sorted(NamesIn.code(*loop.body).bound | targets):
        if spelling in found.needed and (spelling in targets or spelling not in known):
            raise Declined(BOUND_ON_ONE_SIDE, f"`{spelling}`, which says where the loop ended, is read behind it")


def _step(found: Exit, lowering: Lowering) -> list[ast.stmt]:
    """A step once the loop may have ended: nothing, or the step if it has not."""
    at, done = found.statement, name(found.done, found.statement)
    around = Side(lowering)
    rests, step = around.inner(), around.inner()
    names = sorted(NamesIn.code(*found.loop.body).bound & found.needed)
    step.run(found.before)
    step.body += _DONE.fill(at, DONE=found.done, TEST=step.test(at.test))
    inside = found.inside or [ast.copy_location(ast.Pass(), at)]
    step.run([ast.copy_location(ast.If(done, inside, found.after), at)])
    own = [found.returned] if isinstance(found.leaving, ast.Return) else []
    rests.reads |= {*own, found.done}
    step.reads |= {found.done}
    for side in (rests, step):
        side.give([*(side.value(name(each, at)) for each in (*names, *own)), done], at)
    branch = branch_of((rests, step), [*names, *own, found.done])
    assigned = [_ASSIGN.fill(at, TARGET=target, VALUE=value)[0] for target, value in branch.results(at)]
    return _STEP.fill(at, DONE=found.done, SIDES=branch.definitions(at), ARGUMENTS=branch.arguments, ASSIGN=assigned)


def _after(found: Exit, scope: ModuleScope) -> list[ast.stmt]:
    """What stands for all that follows the loop, if the function may have returned in it."""
    if not isinstance(found.leaving, ast.Return):
        return []
    block, inside = _around(found)
    place = replace(found.place, block=block, index=block.index(found.loop), inside=inside)
    at, around = found.statement, Side(Lowering(place, scope))
    returned, goes_on = around.inner(), around.inner()
    returned.reads.add(found.returned)
    returned.give([name(found.returned, at)], at)
    goes_on.run(following(place))
    if not goes_on.ended:
        goes_on.give([constant(None, at)], at)
    branch = branch_of((returned, goes_on))
    return _AFTER.fill(at, DONE=found.done, SIDES=branch.definitions(at), ARGUMENTS=branch.arguments)


def _around(found: Exit) -> tuple[list[ast.stmt], tuple[ast.stmt, ...]]:
    """The block that the loop stands in, and the statements around it."""
    inside = found.place.inside[:-1]
    outer: ast.AST = inside[-1] if inside else found.place.function.node
    blocks = [getattr(outer, part, None) for part in ("body", "orelse", "finalbody")]
    return next(block for block in blocks if block and found.loop in block), inside
