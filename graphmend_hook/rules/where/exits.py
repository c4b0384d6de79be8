"""Exits that data decides: ``break``, ``return`` and ``continue`` under a test of data, in a loop that Dynamo unrolls.

What follows the exit, in its step and in all later ones, is a side that is taken where the loop goes on.  A step that
eager does not make changes nothing: each name that the loop binds is selected, and so is what a ``return`` gives.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...diagnostics import Refusal
from ...source.deep_exits import Lifted
from ...source.names import NamesIn, unpacks, walk
from ...source.scopes import Function, ModuleScope, Place
from ...source.templates import DONE, ITEM_AT_HAND, OWN, Template, constant, expression, name, replaced
from ..base import Declined
from ..shared.blocks import following, has_effect, leaves_loop, passing, stored_in
from ..shared.branch import Branch, BranchCandidate
from ..shared.codes import BOUND_ON_ONE_SIDE, LEAVES_EARLY, OTHER_STATEMENT
from ..shared.lower import Lowering, of_data
from ..shared.side import Side, assigning, branch_of, unread_at
from ..shared.speculated import Lowers
from .codes import CAUGHT

_CONTINUE = Template("continue")
_LOOP = Template("if GM.compiling():\n    KEEP\n    DONE = False\n    LOOP\n    AFTER\nelse:\n    ORIGINAL")
_MAKING_ITERATORS = frozenset({"enumerate", "reversed", "zip"})
_SELECTED = Template(
    """
SIDES
OUTCOME = SELECT(DONE, (THEN, ELSE), (ARGUMENTS,), None)
GM.expect_step(OUTCOME)
ASSIGN
"""
)
_STEP = Template("if DONE is not False:\n    SELECTED\n    continue")
_OTHERWISE = Template("if DONE is not False:\n    SELECTED\nelse:\n    ORELSE")
_AFTER = Template("if DONE is not False:\n    SELECTED\n    return OUTCOME[0]")
_ASSIGN = Template("TARGET = VALUE")
_DONE = Template("DONE = GM.truth_like(TEST, LIKE)")
_TESTED = Template("TESTED = TEST\nDONE = GM.truth_like(TESTED, LIKE)")
_LEAVING = (ast.Break, ast.Continue, ast.Return)


@dataclass(frozen=True)
class Exits:
    """The loop that `place` is the first statement of, and its exits: ``if test: ...; break`` in its body.

    They are ``break`` or ``return``, all the same; and a ``continue`` ends a step alike.
    """

    place: Place
    loop: ast.For
    exits: tuple[ast.If, ...]

    @property
    def returns(self) -> bool:
        return any(isinstance(each.body[-1], ast.Return) for each in self.exits)

    @property
    def leaves(self) -> bool:
        """Can the loop be left, and not only a step?"""
        return any(not isinstance(each.body[-1], ast.Continue) for each in self.exits)

    @property
    def only_returns(self) -> bool:
        """Is it left by ``return`` alone, so that nobody reads a name of it once it is left?"""
        return all(isinstance(each.body[-1], ast.Return) for each in self.exits) and not self.loop.orelse

    @property
    def unread(self) -> frozenset[str]:
        """The names that nobody reads where the loop is left."""
        return self.bound - {*self.own} if self.only_returns else frozenset()

    @property
    def bound(self) -> frozenset[str]:
        """The names that the loop binds."""
        return NamesIn.code(*self.loop.body).bound | NamesIn.code(self.loop.target).bound

    def inside(self, statement: ast.If) -> list[ast.stmt]:
        """What is done where the loop is left there, or the step."""
        found = [*statement.body[:-1], *self.returned_at(statement)]
        return found or [passing(statement)]

    def after(self, statement: ast.If) -> list[ast.stmt]:
        """What is done where it is not.  There has to be a value of a `return` for others to be selected from."""
        rest = self.loop.body[self.loop.body.index(statement) + 1 :]
        return [*self.returned_at(statement), *rest]

    def returned_at(self, statement: ast.If) -> list[ast.stmt]:
        """The value of its ``return`` gets a name, if it has one."""
        leaving = statement.body[-1]
        if not isinstance(leaving, ast.Return):
            return []
        value = leaving.value or constant(None, leaving)
        return _ASSIGN.fill(leaving, TARGET=name(self.returned, leaving, ast.Store()), VALUE=value)

    @property
    def done(self) -> str:
        """The name that says whether the loop has been left: False, or a tensor () of bool."""
        return f"{DONE}{self.loop.lineno}"

    @property
    def returned(self) -> str:
        """The name that holds what a ``return`` gives."""
        return f"{OWN}returned{self.loop.lineno}"

    @property
    def target(self) -> str:
        """The name that holds what the target of the loop is assigned, in a step that may not be made."""
        return f"{ITEM_AT_HAND}{self.loop.lineno}"

    @property
    def own(self) -> list[str]:
        """Our names that a step hands on."""
        return [*([self.returned] if self.returns else ()), *([self.done] if self.leaves else ())]

    @property
    def perhaps(self) -> frozenset[str]:
        """The names that a step may have bound before its first exit.

        Where one is not, the trace fails as it is handed to a side, and the loop is traced as it was written.
        """
        return NamesIn.code(*self.loop.body).bound if self.only_returns else self.bound_first

    @property
    def bound_first(self) -> frozenset[str]:
        """The names that a step binds before its first exit."""
        return NamesIn.code(*self.loop.body[: self.loop.body.index(self.exits[0])]).bound

    @property
    def begun(self) -> frozenset[str]:
        """The names that are bound where a step has been traced up to its first exit."""
        return self.perhaps | NamesIn.code(self.loop.target).bound

    @property
    def needed(self) -> frozenset[str]:
        """The names that may be read after a step, in the next one or behind the loop."""
        flow = self.place.function.flow
        return flow.needed_after(self.loop.body[-1]) | flow.needed_after(self.loop) | {*self.own}


class _Left(ast.Pass):
    """Stands where it becomes known whether the loop is left; taken: it is, by the test of an exit."""

    def __init__(self, taken: bool) -> None:
        super().__init__()
        self.taken = taken


class _Exit(ast.If):
    """Stands for an exit in what follows another one; found: that exit."""

    def __init__(self, found: ast.If, inside: list[ast.stmt]) -> None:
        super().__init__(found.test, inside, [])
        self.found = found
        ast.copy_location(self, found)


class _Taken(ast.If):
    """Stands for an exit in a side: what is done where it is taken, and what follows it in its step."""


class Step(Side):
    """A side in which a step of the loop may end."""

    def __init__(self, lowering: Lowers, found: Exits, around: Side | None = None) -> None:
        super().__init__(lowering, around)
        self.found = found
        self.handed = frozenset(found.own)
        self.perhaps, self.behind = found.perhaps, found.perhaps - found.bound_first

    def inner(self) -> Step:
        return Step(self.lowering, self.found, self)

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self.handed and node.id not in self.assigned:
            self.reads.add(node.id)
        return super()._name(node)

    def _run(self, statement: ast.stmt, rest: Sequence[ast.stmt]) -> None:
        if not isinstance(statement, _Left):
            super()._run(statement, rest)
            return
        test = expression("TEST", self.found.loop)
        assert isinstance(test, ast.Name)
        self.reads.add(test.id)
        taken, like = constant(statement.taken, test), expression("GM.truth(TEST)", test)
        self.body += _DONE.fill(self.found.loop, DONE=self.found.done, TEST=taken, LIKE=like)
        self.assigned.add(self.found.done)

    def run(self, block: Sequence[ast.stmt]) -> None:
        """Do what the statements do, up to an exit, and what follows that only where it is not taken."""
        for index, statement in enumerate(block):
            found = statement.found if isinstance(statement, _Exit) else statement
            if isinstance(found, ast.If) and found in self.found.exits:
                super().run(block[:index])
                self._exit(found, [self._inside(each) for each in block[index + 1 :]])
                return
        super().run(block)

    def _inside(self, statement: ast.stmt) -> ast.stmt:
        """The statement, which is none that leaves the side where it is an exit."""
        is_exit = isinstance(statement, ast.If) and statement in self.found.exits
        return _Exit(statement, self.found.inside(statement)) if is_exit else statement  # type: ignore[arg-type]

    def _exit(self, at: ast.If, rest: Sequence[ast.stmt]) -> None:
        taken = at.test
        if self.found.leaves:
            is_left = not isinstance(at.body[-1], ast.Continue)
            spelling = self.found.done if is_left else f"{self.found.done}_{at.lineno}"
            like, tested = self.value(name(self.found.done, at)), f"{self.found.done}_{at.lineno}_tested"
            test, taken = self.judged(at.test, self.test(at.test)), name(tested, at)  # Python may know that one
            self.body += _TESTED.fill(at, TESTED=tested, TEST=test, DONE=spelling, LIKE=like)
            self.assigned |= {tested, spelling}
        self.run([ast.copy_location(_Taken(taken, self.found.inside(at), [*rest] or [passing(at)]), at)])

    def _falling(self, statement: ast.If) -> Branch:
        if not isinstance(statement, _Taken) or not self.found.only_returns:
            return super()._falling(statement)
        needed, unread = self.found.needed, self.found.unread
        return assigning(statement, statement.body, statement.orelse, self, needed, unread=unread)


@dataclass(frozen=True)
class LoopCandidate:
    """A loop with an exit that data decides: each step begins with what stands for it once the loop may have ended.

    first: the line of the first exit, at which its steps are judged.
    otherwise: gives what stands for the ``else`` of the loop, given that mended.
    after: what stands for all that follows the loop, if the function may have returned in it.
    """

    at: ast.For
    done: str
    target: str
    first: int
    step: list[ast.stmt]
    otherwise: Callable[[list[ast.stmt]], list[ast.stmt]]
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
        bind = _ASSIGN.fill(self.at, TARGET=mended.target, VALUE=name(self.target, self.at))
        body = [*self.step, *bind, *(self._leaving(statement, names) for statement in mended.body)]
        target, orelse = name(self.target, self.at, ast.Store()), self.otherwise(mended.orelse)
        loop = ast.copy_location(ast.For(target, iterated, body, orelse), self.at)
        original = self.at.as_written if isinstance(self.at, Lifted) else self.at
        return _LOOP.fill(self.at, KEEP=keep, DONE=self.done, LOOP=loop, AFTER=self.after, ORIGINAL=original)

    def _iterated(self) -> tuple[list[ast.expr], ast.expr]:
        """What the loop goes over, each evaluated once, and with the names of these what is iterated."""
        kept: list[ast.expr] = []
        return kept, self._named(self.at.iter, kept)

    def _named(self, iterated: ast.expr, kept: list[ast.expr]) -> ast.expr:
        """It with names for what iterators are made of, which is added to what is kept: ``enumerate(zip(a, b), 1)``."""
        match iterated:
            case ast.Constant():
                return iterated
            case ast.Call(function, arguments, keywords) as call if self.scope.names_one_of(
                function, _MAKING_ITERATORS, self.function
            ) and not unpacks(call):
                named = [self._named(each, kept) for each in arguments]
                return ast.copy_location(ast.Call(function, named, keywords), call)
        kept.append(iterated)
        return name(f"{self.done}_{len(kept) - 1}", iterated)

    def _leaving(self, statement: ast.stmt, iterated: list[ast.Name]) -> ast.stmt:
        """The statement, in which the exit may be taken: it asks `never` where the loop is left as it was written."""

        def asked(node: ast.AST) -> ast.AST | None:
            match node:
                case ast.Call(ast.Attribute(attr="never"), [ast.Constant(line)]) if line == self.at.lineno:
                    first = constant(self.first, node)
                    return expression("GM.may_leave((ITERATED,), FIRST)", node, ITERATED=iterated, FIRST=first)
            return None

        return replaced(statement, asked)


def exits_of(place: Place) -> Exits | None:
    """The exits of the loop at `place`, as far as they stand in its body; None if it has none."""
    loop = place.statement
    if not isinstance(loop, ast.For):
        return None
    found = _exits_in(loop)
    return Exits(replace(place, block=loop.body, index=0, inside=(*place.inside, loop)), loop, found) if found else None


def _exits_in(loop: ast.For) -> tuple[ast.If, ...]:
    branches = [each for each in loop.body if isinstance(each, ast.If) and not each.orelse]
    return tuple(each for each in branches if isinstance(each.body[-1], _LEAVING))


def exits_at(place: Place) -> Exits | None:
    """The exits of the loop around `place`, if the statement there is one."""
    loop = place.inside[-1] if place.inside else None
    if not isinstance(loop, ast.For) or place.block is not loop.body:
        return None
    found = _exits_in(loop)
    return Exits(replace(place, index=0), loop, found) if place.statement in found else None


def branch_at(statement: ast.If, found: Exits, lowering: Lowering) -> BranchCandidate:
    """What stands for an exit, and for the rest of its step."""
    if found.leaves:
        _parts(found, lowering.scope)  # the loop is mended too, or the exit is declined
    return _branch(statement, found, lowering)


def _branch(statement: ast.If, found: Exits, lowering: Lowering) -> BranchCandidate:
    place, of_step = found.place, isinstance(statement.body[-1], ast.Continue)
    condition = lowering.test(statement.test)
    inside, after = found.inside(statement), found.after(statement)
    if found.leaves:
        inside, after = [_Left(not of_step), *inside], [_Left(False), *after]
    branch = assigning(statement, inside, after, Step(lowering, found), found.needed, unread=found.unread)
    if place.inside_try and has_effect(inside, after):
        raise Declined(CAUGHT, "a handler in the function could catch what a side raises or logs")
    line = constant(found.loop.lineno, statement)
    text = "GM.undecided(TEST) and GM.never(LINE)" if found.leaves else "GM.undecided(TEST) and GM.may_leave((), FIRST)"
    first = constant(found.exits[0].lineno, statement)
    when, finish = expression(text, statement, LINE=line, FIRST=first), _CONTINUE.fill(statement)
    return BranchCandidate(statement, condition, branch, "GM.settle(TEST)", when=when, finish=finish, is_exit=True)


def loop_at(place: Place, scope: ModuleScope, code: str) -> LoopCandidate | None:
    """What stands for the loop at `place`; None if no data may end it, or an exit is declined."""
    found = exits_of(place)
    if found is None or not found.leaves:
        return None
    places = [replace(found.place, index=found.loop.body.index(each)) for each in found.exits]
    of_exits = [of_data(each.test, at, scope, code) for each, at in zip(found.exits, places, strict=True)]
    if any(isinstance(each, Refusal) for each in of_exits) or not any(of_exits):
        return None  # Python decides all of them, or the exit's own refusal says why not
    try:
        for statement, at, lowering in zip(found.exits, places, of_exits, strict=True):
            _branch(statement, found, lowering if isinstance(lowering, Lowering) else Lowering(at, scope))
        step, after = _parts(found, scope)
    except Declined:
        return None  # as well
    otherwise = functools.partial(_otherwise, found, scope)
    first = found.exits[0].lineno
    return LoopCandidate(found.loop, found.done, found.target, first, step, otherwise, after, scope, place.function)


def _parts(found: Exits, scope: ModuleScope) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What a step of the loop begins with, and what stands behind it; raises Declined."""
    _check(found)
    _otherwise(found, scope, [])
    return _step(found, scope), _after(found, scope)


def _check(found: Exits) -> None:
    """Raise Declined if the loop can be left in another way, or names of it could be seen, or missing."""
    loop, flow = found.loop, found.place.function.flow
    others = [each for each in loop.body if each not in found.exits]
    others += [each for statement in found.exits for each in statement.body[:-1]]
    leave = any(map(leaves_loop, others)) or any(isinstance(node, ast.Return) for node in walk(*others, *loop.orelse))
    kinds = {type(each.body[-1]) for each in found.exits} - {ast.Continue}
    if leave or len(kinds) > 1:
        raise Declined(OTHER_STATEMENT, "the loop can be left in several ways")
    if shared := found.bound & flow.captured:
        raise Declined(LEAVES_EARLY, f"the loop assigns to `{min(shared)}`, which other functions can see")
    if missing := (found.bound & found.needed) - flow.bound_in_sides(found.exits[0]) - found.perhaps:
        raise Declined(BOUND_ON_ONE_SIDE, f"`{min(missing)}` is bound behind the exit only, and read later")


def _step(found: Exits, scope: ModuleScope) -> list[ast.stmt]:
    """A step once the loop may have ended: nothing, or the step if it has not."""
    at, loop = found.exits[0], found.loop
    lowering = Lowering(found.place, scope)
    rests, step = Step(lowering, found), Step(lowering, found)
    names = sorted(found.bound & found.needed)
    rests.bound |= found.place.function.flow.bound_in_sides(at) | {*found.own}
    step.bound |= {*found.own}
    step.reads.add(found.target)
    step.slots |= stored_in(loop.body)
    step.run([ast.copy_location(ast.Assign([_stored(loop.target)], name(found.target, at)), at), *loop.body])
    names = sorted({*names, *(step.rewritten & found.needed & (rests.bound | {*found.own}))})
    unread = found.unread
    of_rests = [
        unread_at(at, rests, each) if each in unread else rests.value(name(each, at)) for each in (*names, *found.own)
    ]
    rests.give(of_rests, at)
    step.give([step.value(name(each, at)) for each in (*names, *found.own)], at)
    branch = branch_of((rests, step), [*names, *found.own])
    return _STEP.fill(at, DONE=found.done, SELECTED=_selected(found, branch))


def _selected(found: Exits, branch: Branch, function: str = "GM.select", first: int = 0) -> list[ast.stmt]:
    """What selects between both sides by whether the loop has been left; first: the place of the first result."""
    at = found.exits[0]
    sides, assigned = branch.definitions(at), branch.assigned(at, first)
    select, arguments = expression(function, at), branch.arguments
    return _SELECTED.fill(at, SELECT=select, DONE=found.done, SIDES=sides, ARGUMENTS=arguments, ASSIGN=assigned)


def _stored(target: ast.expr) -> ast.expr:
    if not all(isinstance(node, (ast.Name, ast.Tuple, ast.expr_context)) for node in ast.walk(target)):
        raise Declined(OTHER_STATEMENT, f"the loop assigns to `{ast.unparse(target)}`")
    return target


def _otherwise(found: Exits, scope: ModuleScope, mended: list[ast.stmt]) -> list[ast.stmt]:
    """What stands for the ``else`` of the loop; mended: that where Python comes to it."""
    orelse, at = found.loop.orelse, found.exits[0]
    if not orelse:
        return []
    lowering = Lowering(replace(found.place, block=orelse), scope)
    needed = found.place.function.flow.needed_after(found.loop)
    around = Side(lowering)
    around.bound |= found.begun
    branch = assigning(at, [passing(at)], orelse, around, needed)
    return _OTHERWISE.fill(at, DONE=found.done, SELECTED=_selected(found, branch), ORELSE=mended or [passing(at)])


def _after(found: Exits, scope: ModuleScope) -> list[ast.stmt]:
    """What stands for all that follows the loop, if the function may have returned in it."""
    if not found.returns:
        return []
    block, inside = _around(found)
    place = replace(found.place, block=block, index=block.index(found.loop), inside=inside)
    at, around = found.exits[0], Side(Lowering(place, scope))
    returned, goes_on = around.inner(), around.inner()
    tail = following(place)
    goes_on.slots |= stored_in(tail)
    goes_on.bound |= found.begun
    returned.reads.add(found.returned)
    returned.give_back(name(found.returned, at), at)
    goes_on.run(tail)
    if not goes_on.ended:
        goes_on.give_back(None, at)
    branch = branch_of((returned, goes_on))
    return _AFTER.fill(at, DONE=found.done, SELECTED=_selected(found, branch, "GM.select_returned", first=1))


def _around(found: Exits) -> tuple[list[ast.stmt], tuple[ast.stmt, ...]]:
    """The block that the loop stands in, and the statements around it."""
    inside = found.place.inside[:-1]
    outer: ast.AST = inside[-1] if inside else found.place.function.node
    blocks = [getattr(outer, part, None) for part in ("body", "orelse", "finalbody")]
    return next(block for block in blocks if block and found.loop in block), inside
