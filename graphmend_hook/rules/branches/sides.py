"""The sides of a data-dependent branch, as functions that may both be evaluated.

A side takes the names that it reads as parameters and returns what it binds; so its body keeps the user's names and
touches none of the function around it.  An attribute that it assigns to is a local of its own until the branch is
decided.  What it would log, print or raise goes to the list ``EFFECTS``, as it was at that moment.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...analysis.names import NamesIn, walk
from ...analysis.scopes import Place
from ...analysis.taint import Taint
from ...diagnostics import Refusal
from ...templates import OWN, Template, argument, constant, display, expression, name
from ..declined import Declined
from ..effects.calls import EffectCall, effect_of, stable_call
from ..operators import ARITHMETIC
from .lower import Lowering
from .messages import Captures
from .speculated import Side
from .targets import Slot, is_masked_write, slots_of, written_in_place

_SIDE = Template("def SPELLING(EFFECTS):\n    BODY")
_RETURN = Template("return RESULT")
_SELECT = Template("OUTCOME = GM.required(GM.select(TEST, (THEN, ELSE), ARGUMENTS, EFFECTS))")
_NESTED = Template(
    """
TEST = CONDITION
if GM.undecided(TEST):
    SELECT
elif TEST:
    BODY
else:
    ORELSE
"""
)
_DECIDED = Template("if GM.plain(CONDITION):\n    BODY\nelse:\n    ORELSE")
_EFFECT = Template("EFFECTS.append((None, METHOD, lambda TARGET, VALUES: CALL, RECEIVER, LEAVES))")
_WRITE = Template("EFFECTS.append((None, '=', None, TENSOR, LEAVES))")
_RAISE = Template("DEFINE\nEFFECTS.append((None, None, DELIVERY, TEXT, LEAVES))\nreturn None")
_CURRENT = Template("SPELLING = GM.current(OWNER, KEY)")
_CURRENT_ITEM = Template("SPELLING = GM.current_item(OWNER, KEY)")
MOST_STATEMENTS = 60
_LOOPS_AND_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


@dataclass
class Branch:
    """The two sides of a branch, ready to be emitted.

    definitions: the functions THEN and ELSE.
    arguments: the names to pass to both.
    names, slots: what the results are to be assigned to, in order; slots are attributes and items.
    in_place: those of `names` that are only written by augmented assignments; a tensor keeps its identity.
    """

    definitions: list[ast.stmt]
    arguments: tuple[str, ...]
    names: tuple[str, ...]
    slots: tuple[Slot, ...]
    in_place: frozenset[str] = frozenset()

    def holes(self, at: ast.stmt) -> dict[str, ast.AST]:
        """What the call of ``GM.select`` takes."""
        return {"ARGUMENTS": display([name(spelling, at) for spelling in self.arguments], at)}

    def targets(self, at: ast.stmt) -> list[ast.expr]:
        """The assignable expressions that the results belong to."""
        return [*(name(spelling, at, ast.Store()) for spelling in self.names), *self.slots]


class Sides:
    """Builds the branches of one statement, the branches inside it included."""

    def __init__(self, lowering: Lowering) -> None:
        self._lowering = lowering
        self._place = lowering.place
        self._left = MOST_STATEMENTS
        self._in_place: frozenset[str] = frozenset()
        self._last: set[int] = set()
        self.has_effects = False

    def assigning(self, at: ast.stmt, then: list[ast.stmt], orelse: list[ast.stmt], needed: frozenset[str]) -> Branch:
        """The branch of an ``if`` that falls through, after which the names in `needed` are read."""
        self._in_place = written_in_place([*then, *orelse])
        self._last = {id(block[-1]) for block in (then, orelse) if block}
        branch = self._assigning(at, then, orelse, Side(self._lowering), needed | self._in_place)
        branch.in_place = self._in_place
        return branch

    def returning(self, at: ast.stmt, then: list[ast.stmt], orelse: list[ast.stmt]) -> Branch:
        """The branch of an ``if`` both sides of which end in a ``return``; the result is what they return."""
        return self._returning(at, then, orelse, Side(self._lowering))

    def valued(self, node: ast.IfExp, at: ast.stmt) -> Branch:
        """The branch of a conditional expression; the result is its value."""
        return self._join(at, self._valued_side(node.body, at), self._valued_side(node.orelse, at), (), ())

    def guarded(self, at: ast.stmt, failing: ast.Assert | ast.Expr, condition: ast.expr | None = None) -> Branch:
        """The branch of a check: nothing if it holds, the exception that the statement `failing` raises if not.

        condition: an expression in `failing` that has been evaluated already, under the name TEST.
        """
        self.has_effects = True
        passing, side = Side(self._lowering), Side(self._lowering)
        captures = Captures(side, self._lowering.scope, condition)
        body = _RAISE.fill(
            at,
            DEFINE=captures.delivery_of(failing),
            TEXT=constant(ast.unparse(failing), at),
            LEAVES=display(captures.leaves, at),
        )
        return self._join(at, (_RETURN.fill(at, RESULT=display([], at)), passing), (body, side), (), ())

    def _valued_side(self, value: ast.expr, at: ast.stmt) -> tuple[list[ast.stmt], Side]:
        side = Side(self._lowering)
        return _RETURN.fill(at, RESULT=display([side.value(value)], at)), side

    def _assigning(
        self, at: ast.stmt, then: list[ast.stmt], orelse: list[ast.stmt], base: Side, needed: frozenset[str] | None
    ) -> Branch:
        bound = sorted(NamesIn.code(*then, *orelse).bound)
        slots = slots_of(then, orelse)
        sides = [base.inner(), base.inner()]
        bodies = []
        for side, block in zip(sides, (then, orelse), strict=True):
            side.reads |= {base.stored[ast.unparse(slot)] for slot in slots if ast.unparse(slot) in base.stored}
            opened = self._open([slot for slot in slots if ast.unparse(slot) not in base.stored], side, at)
            bodies.append(opened + self._block(block, side))
        falling = [side for side in sides if not side.ended]
        if not falling:
            raise Declined("R15", "both sides raise")
        known = base.bound | base.assigned
        names = []
        for spelling in bound:
            if needed is not None and spelling not in needed:
                continue
            if all(spelling in side.assigned or spelling in known for side in falling):
                names.append(spelling)
            elif needed is not None:
                raise Declined(
                    "R05", f"`{spelling}` is bound on one side only and read later; bind it before the branch"
                )
        for side, lowered in zip(sides, bodies, strict=True):
            if not side.ended:
                values = [side.value(name(spelling, at)) for spelling in names] + [
                    name(side.stored[ast.unparse(slot)], at) for slot in slots
                ]
                lowered.extend(_RETURN.fill(at, RESULT=display(values, at)))
        return self._join(at, (bodies[0], sides[0]), (bodies[1], sides[1]), tuple(names), tuple(slots))

    def _returning(self, at: ast.stmt, then: list[ast.stmt], orelse: list[ast.stmt], base: Side) -> Branch:
        if slots_of(then, orelse):
            raise Declined("R06", "a side that returns also assigns to an attribute")
        if any(map(is_masked_write, (*then, *orelse))):
            raise Declined("R08", "a side that returns also writes to a tensor")
        sides = [base.inner(), base.inner()]
        bodies = [self._returning_block(block, side) for block, side in zip((then, orelse), sides, strict=True)]
        return self._join(at, (bodies[0], sides[0]), (bodies[1], sides[1]), (), ())

    def _join(
        self,
        at: ast.stmt,
        then: tuple[list[ast.stmt], Side],
        orelse: tuple[list[ast.stmt], Side],
        names: tuple[str, ...],
        slots: tuple[Slot, ...],
    ) -> Branch:
        arguments = tuple(sorted(then[1].reads | orelse[1].reads))
        return Branch(side_functions(then[0], orelse[0], arguments, at), arguments, names, slots)

    def _open(self, slots: Sequence[Slot], side: Side, at: ast.stmt) -> list[ast.stmt]:
        """Statements that read the attributes which the side may assign to into locals."""
        opened: list[ast.stmt] = []
        for slot in slots:
            text = ast.unparse(slot)
            owner = side.owner(slot)
            spelling = OWN + re.sub(r"\W", lambda found: f"{OWN}{ord(found[0])}", text)
            key = constant(slot.attr, at) if isinstance(slot, ast.Attribute) else slot.slice
            current = _CURRENT if isinstance(slot, ast.Attribute) else _CURRENT_ITEM
            opened += current.fill(at, SPELLING=name(spelling, at, ast.Store()), OWNER=owner, KEY=key)
            side.store(text, spelling)
        return opened

    def _block(self, block: Sequence[ast.stmt], side: Side) -> list[ast.stmt]:
        lowered: list[ast.stmt] = []
        for index in range(len(block)):
            if side.ended:
                break
            self._count()
            lowered += self._one(block, index, side)
        return lowered or [ast.copy_location(ast.Pass(), self._place.statement)]

    def _one(self, block: Sequence[ast.stmt], index: int, side: Side) -> list[ast.stmt]:
        statement = block[index]
        if isinstance(statement, ast.If):
            return self._nested(statement, side)
        if isinstance(statement, ast.Assert) and sys.flags.optimize:
            return []
        if isinstance(statement, ast.Assert) and not isinstance(statement.test, ast.Constant):
            failing = ast.copy_location(ast.Assert(expression("False", statement), statement.msg), statement)
            passing = ast.copy_location(ast.Pass(), statement)
            return self._nested(ast.copy_location(ast.If(statement.test, [passing], [failing]), statement), side)
        return self._statement(statement, Place(self._place.function, [*block], index, False), side)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Declined("R07", f"the sides have more than {MOST_STATEMENTS} statements")

    def _statement(self, statement: ast.stmt, place: Place, side: Side) -> list[ast.stmt]:
        if isinstance(statement, ast.Assign):
            if is_masked_write(statement) and id(statement) in self._last:
                return self._masked_write(statement, side)
            return self._assign(statement, statement.targets, statement.value, side)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            return self._assign(statement, [statement.target], statement.value, side)
        if isinstance(statement, ast.AugAssign):
            return self._augment(statement, side)
        if isinstance(statement, (ast.Raise, ast.Assert)):
            return self._raise(statement, side)
        if isinstance(statement, ast.Pass):
            return [statement]
        if isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Constant):
                return []
            return self._effect(place, statement, side)
        raise Declined("R08", f"a side contains `{ast.unparse(statement).split()[0].rstrip(':')}`")

    def _assign(self, statement: ast.stmt, targets: Sequence[ast.expr], value: ast.expr, side: Side) -> list[ast.stmt]:
        lowered = side.value(value)
        stored = [self._target(target, side) for target in targets]
        return [ast.copy_location(ast.Assign(stored, lowered), statement)]

    def _masked_write(self, statement: ast.Assign, side: Side) -> list[ast.stmt]:
        """``tensor[mask] = value`` at the end of a side: written where the mask and the branch's condition hold."""
        target = statement.targets[0]
        assert isinstance(target, ast.Subscript)
        written = [side.value(target.slice), side.value(statement.value)]
        tensor = side.value(target.value)
        return _WRITE.fill(statement, TENSOR=tensor, LEAVES=display(written, statement))

    def _target(self, target: ast.expr, side: Side) -> ast.expr:
        if isinstance(target, ast.Name):
            if any(re.match(rf"{re.escape(target.id)}\b", text) for text in side.stored):
                raise Declined("R04", f"`{target.id}` is rebound where its attributes are written")
            side.assigned.add(target.id)
            return target
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            return name(side.stored[ast.unparse(target)], target, ast.Store())
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.copy_location(ast.Tuple([self._target(item, side) for item in target.elts], ast.Store()), target)
        raise Declined("R08", "a side writes into a container or unpacks with a star")

    def _augment(self, statement: ast.AugAssign, side: Side) -> list[ast.stmt]:
        operation = ARITHMETIC.get(type(statement.op))
        if operation is None:
            raise Declined("R08", f"a side contains `{ast.unparse(statement)}`")
        current = copy.copy(statement.target)
        current.ctx = ast.Load()
        traits = side.operated(operation, current).args[1]  # type: ignore[attr-defined]
        in_place = isinstance(current, ast.Name) and current.id in self._in_place
        value = expression(
            "GM.augmented(NAME, TRAITS, IN_PLACE, A, B)",
            statement,
            NAME=constant(operation, statement),
            TRAITS=traits,
            IN_PLACE=constant(in_place, statement),
            A=side.value(current),
            B=side.value(statement.value),
        )
        return [ast.copy_location(ast.Assign([self._target(statement.target, side)], value), statement)]

    def _effect(self, place: Place, statement: ast.Expr, side: Side) -> list[ast.stmt]:
        found = effect_of(place, self._lowering.scope)
        if isinstance(found, Refusal):
            raise Declined("R09", f"{found.code}: {found.text}")
        if not isinstance(found, EffectCall):
            raise Declined(
                "R02", f"the call of `{ast.unparse(statement.value)[:60]}` may only be made if its side is taken"
            )
        self.has_effects = True
        leaves = display([side.value(leaf) for leaf in found.leaves], statement)
        receiver = found.receiver if stable_call(found.receiver) else side.value(found.receiver)
        return _EFFECT.fill(
            statement, METHOD=constant(found.method, statement), CALL=found.call, RECEIVER=receiver, LEAVES=leaves
        )

    def _raise(self, statement: ast.Raise | ast.Assert, side: Side) -> list[ast.stmt]:
        self.has_effects = True
        side.ended = True
        captures = Captures(side, self._lowering.scope)
        delivery = captures.delivery_of(statement)
        text = constant(ast.unparse(statement), statement)
        return _RAISE.fill(statement, DEFINE=delivery, TEXT=text, LEAVES=display(captures.leaves, statement))

    def _nested(self, statement: ast.If, side: Side) -> list[ast.stmt]:
        condition = side.test(statement.test)
        opened = self._open(
            [s for s in slots_of(statement.body, statement.orelse) if ast.unparse(s) not in side.stored],
            side,
            statement,
        )
        if self._lowering.taint(statement.test) is Taint.NO:
            body, orelse = self._decided(statement, side)
            return [*opened, *_DECIDED.fill(statement, CONDITION=condition, BODY=body, ORELSE=orelse)]
        branch = self._assigning(statement, statement.body, statement.orelse, side, None)
        side.reads |= set(branch.arguments) - side.assigned - set(side.stored.values())
        select = branch.definitions + _SELECT.fill(statement, **branch.holes(statement))
        select += [
            ast.copy_location(
                ast.Assign([self._target(target, side)], expression(f"OUTCOME[{index}]", statement)), statement
            )
            for index, target in enumerate(branch.targets(statement))
        ]
        body, orelse = self._decided(statement, side)
        return [*opened, *_NESTED.fill(statement, CONDITION=condition, SELECT=select, BODY=body, ORELSE=orelse)]

    def _decided(self, statement: ast.If, side: Side) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Both blocks of an ``if`` whose test is a Python value, one after the other."""
        sides = side.copy(), side.copy()
        blocks = []
        for inner, block in zip(sides, (statement.body, statement.orelse), strict=True):
            blocks.append(self._block(block, inner))
            side.reads |= inner.reads
        falling = [inner.assigned for inner in sides if not inner.ended]
        side.ended = not falling
        side.assigned |= set.intersection(*falling) if falling else set()
        return blocks[0], blocks[1]

    def _returning_block(self, block: Sequence[ast.stmt], side: Side) -> list[ast.stmt]:
        lowered: list[ast.stmt] = []
        for index, statement in enumerate(block):
            self._count()
            if isinstance(statement, ast.Return):
                value = side.value(statement.value) if statement.value else constant(None, statement)
                side.ended = True
                return lowered + _RETURN.fill(statement, RESULT=display([value], statement))
            if isinstance(statement, ast.If) and returns(statement):
                return lowered + self._returning_branch(statement, block[index + 1 :], side)
            lowered += self._one(block, index, side)
            if side.ended:
                return lowered
        side.ended = True
        at = self._place.statement
        return lowered + _RETURN.fill(at, RESULT=display([constant(None, at)], at))

    def _returning_branch(self, statement: ast.If, rest: Sequence[ast.stmt], side: Side) -> list[ast.stmt]:
        condition = side.test(statement.test)
        blocks = [*statement.body, *rest], [*statement.orelse, *rest]
        decided = []
        for block in blocks:
            taken = side.copy()
            decided.append(self._returning_block(block, taken))
            side.reads |= taken.reads
        side.ended = True
        if self._lowering.taint(statement.test) is Taint.NO:
            return _DECIDED.fill(statement, CONDITION=condition, BODY=decided[0], ORELSE=decided[1])
        branch = self._returning(statement, *blocks, side)
        side.reads |= set(branch.arguments) - side.assigned
        select = branch.definitions + _SELECT.fill(statement, **branch.holes(statement))
        select += _RETURN.fill(statement, RESULT=name("OUTCOME", statement))
        return _NESTED.fill(statement, CONDITION=condition, SELECT=select, BODY=decided[0], ORELSE=decided[1])


def side_functions(
    then: list[ast.stmt], orelse: list[ast.stmt], arguments: Sequence[str], at: ast.stmt
) -> list[ast.stmt]:
    """The functions THEN and ELSE with these bodies."""
    definitions: list[ast.stmt] = []
    for spelling, body in (("THEN", then), ("ELSE", orelse)):
        definition = _SIDE.fill(at, BODY=body)[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.name = name(spelling, at).id
        definition.args.args += [argument(parameter, at) for parameter in arguments]
        definitions.append(definition)
    return definitions


def returns(statement: ast.If) -> bool:
    """Is there a ``return`` in it?"""
    return any(isinstance(node, ast.Return) for node in walk(statement))


def following(place: Place) -> list[ast.stmt]:
    """What follows an early return, up to the end of the function."""
    if any(isinstance(outer, _LOOPS_AND_BLOCKS) or hasattr(outer, "handlers") for outer in place.inside):
        raise Declined("R06", "the branch returns from inside a loop, a `with` or a `try`")
    tail = place.block[place.index + 1 :]
    if place.inside and not (tail and isinstance(tail[-1], (ast.Return, ast.Raise))):
        raise Declined("R06", "the branch returns early, and what follows it does not end in a `return`")
    return [*tail]
