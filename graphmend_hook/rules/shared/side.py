"""One side of a branch, as the body of a function that may be called though the side is not taken.

The function takes the names that the side reads and gives what it binds; so the body keeps the program's names, and
touches none of the function around it.  An attribute that it assigns to is a local of its own until the branch is
decided.  What it would log, print or raise goes to the list ``EFFECTS``, as it was at that moment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from ...diagnostics import Refusal
from ...source.deep_exits import LEFT, says_whether_left
from ...source.names import NamesIn, unpacks, walk
from ...source.scopes import Function, Place
from ...source.templates import OWN, Template, constant, expression, name
from ...source.tensor_ops import WRITTEN_BY_METHODS
from ..base import Declined
from ..defer.calls import EffectCall, effect_of, stable_call
from ..defer.kept import EXTEND, appended_to, is_new
from ..defer.late import Late
from .blocks import bound_for_certain, is_item, passing, returns, stays, stored_in
from .branch import Branch
from .codes import (
    BOTH_RAISE,
    BOUND_ON_ONE_SIDE,
    EFFECT_IN_SIDE,
    LEAVES_EARLY,
    OTHER_NAME,
    OTHER_STATEMENT,
)
from .messages import Captures, class_raised
from .shared_calls import Lazy
from .speculated import ARITHMETIC, Lowers, Speculation, may_be_of_data

_GIVE = Template("return (RESULTS,)")
_HAND_ON = Template("return OUTCOME")
_NESTED = Template("OUTCOME = NESTED(CONDITION, (THEN, ELSE), (ARGUMENTS,), EFFECTS)")
_EFFECT = Template("EFFECTS.append((None, METHOD, lambda TARGET, VALUES: CALL, RECEIVER, (LEAVES,)))")
_APPEND = Template("EFFECTS.append((None, METHOD, GM.append_now, TARGET, (LEAVES,)))")
_RAISE = Template("CHECK\nDEFINE\nEFFECTS.append((None, None, DELIVERY, TEXT, (LEAVES,)))\nreturn None")
_CREATE = Template(
    """
if not hasattr(OWNER, ATTRIBUTE):
    def DELIVERY(TARGET, VALUES):
        SLOT = VALUES[0]
    EFFECTS.append((None, '.', DELIVERY, OWNER, (VALUE,)))
"""
)
_HEARD = Template("GM.unheard(RAISED)")
_RAISED = Template("if OUTCOME is None:\n    return None")
_AS_WRITTEN = Template("START = GM.begun()\nSTATEMENT\nGM.judged(START, None)")
_STORES = Template("GM.stores()")
_AUGMENT_ITEM = Template("TARGET = GM.augment_item(OPERATION, ITEMS, KEY, VALUE)")
_APPEND_TO = Template("TARGET = GM.append_to(SPELLING, ITEMS, VALUE)")
_WRITE_ITEM = Template("TARGET = GM.write_item(ITEMS, KEY, VALUE)")


# Context managers that change how torch computes, and nothing else.
_MODES = frozenset(f"torch.{name}" for name in ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled"))
_READING = frozenset({"append", "item", "tolist"})


def _is_call(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call)


def _reads_number(node: ast.AST) -> bool:
    """Is it a call that reads numbers of a tensor, or an append?"""
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "attr", "") in _READING or getattr(node.func, "id", "") in ("float", "int")


class Side(Speculation):
    """What one side does.

    body: the statements of its function; ended: control does not reach their end; raises: they may raise.
    handed: names of ours that it hands on.
    rewritten: the names of what it writes items of; another tensor may stand for it from then on.
    """

    def __init__(self, lowering: Lowers, around: Side | None = None) -> None:
        super().__init__(lowering, around)
        self.body: list[ast.stmt] = []
        self.ended = self.raises = self._stores = False
        self.handed: frozenset[str] = frozenset()
        self.behind: frozenset[str] = frozenset()  # of those that may be bound, the ones that a step binds late
        self.rewritten: set[str] = set()

    def inner(self) -> Side:
        """A side of a branch in this one."""
        return Side(self.lowering, self)

    def run(self, block: Sequence[ast.stmt]) -> None:
        """Do what the statements do, up to one that leaves the side."""
        for index, statement in enumerate(block):
            if not self.ended:
                self.lowering.count_statement()
                self._run(statement, block[index + 1 :])

    def give(self, values: Iterable[ast.expr], at: ast.stmt) -> None:
        """Return the values, which are lowered, to whoever decides the branch."""
        self.body += _GIVE.fill(at, RESULTS=[*values])
        self.ended = True

    def give_back(self, value: ast.expr | None, at: ast.stmt) -> None:
        """Return the value, or None."""
        self.give([constant(None, at) if value is None else self.whole(value)], at)

    def fail(self, statement: ast.stmt, evaluated: ast.expr | None = None, raised: ast.expr | None = None) -> None:
        """Leave the exception that `statement` raises.

        evaluated: an expression in it that has been evaluated already, under the name TEST.
        raised: the class of the exception, or the name of a builtin one, if the statement is no ``raise``.
        """
        captures = Captures(self, self.leaf, evaluated)
        delivery, text = captures.delivery_of(statement), constant(ast.unparse(statement), statement)
        raised = raised or class_raised(statement)
        check: list[ast.stmt] = []
        if raised is not None and not captures.is_unheard(raised):
            check = _HEARD.fill(statement, RAISED=self.whole(raised))
        self.body += _RAISE.fill(statement, CHECK=check, DEFINE=delivery, TEXT=text, LEAVES=captures.leaves)
        self.ended = self.raises = True

    def create(self, lazy: Lazy, at: ast.stmt) -> None:
        """Leave the attribute to be stored if the side is taken; in the side it is a local."""
        owner, attribute = self.value(name(lazy.owner, at)), constant(lazy.attribute, at)
        slot = ast.copy_location(ast.Attribute(name(f"{OWN}target", at), lazy.attribute, ast.Store()), at)
        value = name(lazy.value, at)
        self.body += _CREATE.fill(at, OWNER=owner, ATTRIBUTE=attribute, SLOT=slot, VALUE=value)
        self.reads.add(lazy.value)
        self.stored[f"{lazy.owner}.{lazy.attribute}"] = lazy.value

    def _run(self, statement: ast.stmt, rest: Sequence[ast.stmt]) -> None:
        match statement:
            case ast.If():
                self._branch(statement, rest)
            case ast.Return():
                self.give_back(statement.value, statement)
            case ast.Raise():
                self.fail(statement)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.With() if self._is_lowered(statement):
                self._with(statement)
            case ast.For() | ast.While() | ast.With() | ast.Assert() if not stored_in([statement]) and self._may_stand(
                statement
            ):
                self._as_written(statement)
            case _:
                self._bind(statement)

    def _bind(self, statement: ast.stmt) -> None:
        """A statement that binds, stores or appends, or calls something."""
        match statement:
            case ast.Assign(targets=[ast.Subscript(ast.Name(owner)) as target]) if (
                may_be_of_data(target.slice) and self._may_be_rebound(owner) and self._may_stand(statement)
            ):
                self._write_item(statement, target)
            case ast.Assign(targets=[ast.Subscript()]) if not stored_in([statement]) and self._may_stand(statement):
                self._as_written(statement)
            case ast.Assign():
                self._assign(statement, statement.targets, statement.value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(statement, [target], value)
            case ast.AugAssign(target=ast.Subscript() as target) if not is_item(target) and self._may_stand(statement):
                self._augment_item(statement, target)
            case ast.AugAssign() | ast.Expr() if self._append(statement):
                pass
            case ast.AugAssign() if type(statement.op) in ARITHMETIC:
                self._augment(statement, statement.target)
            case ast.Expr():
                self._effect(statement)
            case _:
                raise Declined(OTHER_STATEMENT, f"a side contains `{ast.unparse(statement).splitlines()[0][:60]}`")

    def _augment(self, statement: ast.AugAssign, target: ast.expr) -> None:
        """``name += value``, and so of an attribute or an item."""
        now = self.whole(name(target.id, target) if isinstance(target, ast.Name) else target)
        operation, value = constant(ARITHMETIC[type(statement.op)], target), self.whole(statement.value)
        new = expression("GM.augmented(OPERATION, NOW, VALUE)", statement, OPERATION=operation, NOW=now, VALUE=value)
        self._store(statement, [self._target(target)], new)

    def _augment_item(self, statement: ast.AugAssign, target: ast.Subscript) -> None:
        """``items[key] += value``, of a dict or of a tensor."""
        operation = constant(ARITHMETIC.get(type(statement.op), "matmul"), target)
        given = {
            "ITEMS": self.whole(target.value),
            "KEY": self.whole(target.slice),
            "VALUE": self.whole(statement.value),
        }
        self.body += _AUGMENT_ITEM.fill(statement, OPERATION=operation, TARGET=self._rewritten(target), **given)

    def _append(self, statement: ast.AugAssign | ast.Expr) -> bool:
        """``numbers.append(number)``, ``numbers += [number]``: of a list that may be another one from then on."""
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(owner), "append"), [value], [])):
                values = [value]
            case ast.AugAssign(ast.Name(owner), ast.Add(), ast.List([*values])):
                pass
            case _:
                return False
        is_read = len(values) > 1 and any(owner in NamesIn.code(each).read for each in values)
        if not self._may_be_rebound(owner) or is_read or any(isinstance(each, ast.Starred) for each in values):
            return False
        for value in values:
            at = name(owner, statement)
            given = {"SPELLING": constant(owner, statement), "ITEMS": self.whole(at), "VALUE": self.whole(value)}
            self.rewritten.add(owner)
            target = self._target(name(owner, statement, ast.Store()))
            self.body += _APPEND_TO.fill(statement, TARGET=target, **given)
        return True

    def _write_item(self, statement: ast.Assign, target: ast.Subscript) -> None:
        """``items[key] = value``, where the key may be a tensor."""
        given = {
            "VALUE": self.whole(statement.value),
            "ITEMS": self.whole(target.value),
            "KEY": self.whole(target.slice),
        }
        self.body += _WRITE_ITEM.fill(statement, TARGET=self._rewritten(target), **given)

    def _rewritten(self, target: ast.Subscript) -> ast.expr:
        """What is bound to what stands for the owner of the items from now on."""
        if not isinstance(target.value, ast.Name) or not self._may_be_rebound(target.value.id):
            return name(f"{OWN}rewritten", target, ast.Store())
        self.rewritten.add(target.value.id)
        return self._target(name(target.value.id, target, ast.Store()))

    def _may_be_rebound(self, spelling: str) -> bool:
        """Is it a local name that no other function has, and that is bound here?"""
        is_known = spelling in self.bound or spelling in self.assigned
        return is_known and spelling in self._own and spelling not in self.lowering.place.function.flow.captured

    def _may_stand(self, statement: ast.stmt) -> bool:
        """May the statement be left to the trace, and binds it no name that other functions can see?"""
        shared = self.lowering.place.function.flow.captured
        held = self.slots | self.stored.keys()
        if any(isinstance(node, ast.expr) and ast.unparse(node) in held for node in walk(statement)):
            return False
        return stays(statement) and not self.has_assigned_shared() and NamesIn.code(statement).bound.isdisjoint(shared)

    def _is_lowered(self, statement: ast.With) -> bool:
        """Is it ``with torch.no_grad():`` and the like, with a number that is read in it, or a branch?

        Anything else is left to the trace.
        """
        calls = [item.context_expr for item in statement.items if item.optional_vars is None]
        of_torch = [self.lowering.scope.imports.qualified(call.func) in _MODES for call in calls if _is_call(call)]
        if len(of_torch) < len(statement.items) or not all(of_torch) or returns(statement):
            return False
        return any(isinstance(node, ast.If) or _reads_number(node) for node in walk(*statement.body))

    def _with(self, statement: ast.With) -> None:
        """What stands in the block is done in it."""
        items = [ast.withitem(self.whole(item.context_expr), None) for item in statement.items]
        outside, self.body = self.body, []
        self.run(statement.body)
        if self.ended:
            raise Declined(OTHER_STATEMENT, "a side ends in a `with`")
        inside, self.body = self.body, outside
        self.body.append(ast.copy_location(ast.With(items, inside or [passing(statement)]), statement))

    def _as_written(self, statement: ast.stmt) -> None:
        """A statement that the trace judges as a whole, once it is traced."""
        names, known = NamesIn.code(statement), self.bound | self.assigned
        for spelling in sorted(names.read | (names.bound & known)):
            if spelling in known or spelling not in names.bound:
                self.value(name(spelling, statement))
        self.body += _AS_WRITTEN.fill(statement, STATEMENT=statement)
        self.assigned |= (names.bound & known) | bound_for_certain(statement)
        self.uncertain |= names.bound - self.assigned

    def _assign(self, at: ast.stmt, targets: Sequence[ast.expr], value: ast.expr) -> None:
        lowered = self.judged(value, self.test(value)) if says_whether_left(at) else self.whole(value)
        self._store(at, [self._target(target) for target in targets], lowered)

    def _store(self, at: ast.stmt, targets: list[ast.expr], value: ast.expr) -> None:
        self.body.append(ast.copy_location(ast.Assign(targets, value), at))

    def _target(self, target: ast.expr) -> ast.expr:
        if isinstance(target, ast.Name):
            if any(re.match(rf"{re.escape(target.id)}\b", text) for text in self.stored):
                raise Declined(OTHER_NAME, f"`{target.id}` is rebound where its attributes are written")
            self.assigned.add(target.id)
            return target
        if isinstance(target, ast.Attribute):
            self._begin_stores(target)
            return ast.copy_location(ast.Attribute(self.whole(target.value), target.attr, ast.Store()), target)
        if is_item(target):
            self._begin_stores(target)
            return ast.copy_location(ast.Subscript(self.whole(target.value), target.slice, ast.Store()), target)
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.copy_location(ast.Tuple([self._target(item) for item in target.elts], ast.Store()), target)
        raise Declined(OTHER_STATEMENT, f"a side writes to `{ast.unparse(target)}`, or unpacks with a star")

    def _begin_stores(self, at: ast.expr) -> None:
        """Only a trace can take back what the side stores."""
        if not self._stores:
            self.body += _STORES.fill(at)
            self._stores = True

    def _effect(self, statement: ast.Expr) -> None:
        match appended_to(statement, self.lowering.place.function):
            case ast.Call(), _, _:
                pass
            case owner, "extend", items:
                self.body += EXTEND.fill(statement, RECEIVER=self.whole(owner), LEAF=self.whole(items))
                return
            case owner, _, value:
                holes = {"METHOD": constant("+new" if is_new(value) else "+", statement), "TARGET": self.whole(owner)}
                self.body += _APPEND.fill(statement, LEAVES=[self.whole(value)], **holes)
                return
        found = effect_of(Place(self.lowering.place.function, [statement], 0, False), self.lowering.scope)
        if isinstance(found, Refusal):
            raise Declined(EFFECT_IN_SIDE, f"{found.code}: {found.text}")
        if not isinstance(found, EffectCall):
            if not self._writes_in_place(statement):
                self.body.append(ast.copy_location(ast.Expr(self.whole(statement.value)), statement))
            return
        if found.shown is not None:
            raise Declined(EFFECT_IN_SIDE, "the effect may show one of its callers")
        leaves = [leaf.emit(self.leaf(leaf.node, leaf.apart)) for leaf in found.leaves]
        receiver = found.receiver if stable_call(found.receiver) else self.whole(found.receiver)
        self.body += _EFFECT.fill(
            statement, METHOD=constant(found.method, statement), CALL=found.call, RECEIVER=receiver, LEAVES=leaves
        )

    def _writes_in_place(self, statement: ast.Expr) -> bool:
        """``out.index_add_(0, rows, values)``: as an item that is written."""
        match statement.value:
            case ast.Call(ast.Attribute(ast.Name(owner) as target, method)) as call if (
                method in WRITTEN_BY_METHODS and self._may_be_rebound(owner) and not unpacks(call)
            ):
                lowered = self.value(call)
                assert isinstance(lowered, ast.Call)
                self.rewritten.add(owner)
                holes = {"ITEMS": self.value(target), "METHOD": constant(method, statement)}
                made = expression("GM.write_by(ITEMS, METHOD)", statement, **holes)
                assert isinstance(made, ast.Call)
                made.args += lowered.args
                made.keywords = lowered.keywords
                self._store(statement, [self._target(name(owner, target, ast.Store()))], made)
                return True
        return False

    def leaf(self, node: ast.expr, apart: Late | None) -> ast.expr:
        """A value of an effect, which may be computed when that is delivered."""
        if apart is None:
            return self.whole(node)
        reads = [self.whole(read) for read in apart.reads.values()]
        try:
            now: ast.expr | None = self.whole(node)
        except Declined:
            now = None
        return apart.emit(reads, now, checked=False)

    def _branch(self, statement: ast.If, rest: Sequence[ast.stmt]) -> None:
        """A branch inside the side, on tensor data or not; the rest of the side belongs to it if it may return."""
        condition = self.judged(statement.test, self.test(statement.test))
        if returns(statement):
            branch = returning([*statement.body, *rest], [*statement.orelse, *rest], self)
        else:
            branch = self._falling(statement)
        self.reads |= set(branch.arguments) - self.assigned
        self.body += branch.definitions(statement)
        nested = expression("GM.nested_returned" if returns(statement) else "GM.nested", statement)
        self.body += _NESTED.fill(statement, NESTED=nested, CONDITION=condition, ARGUMENTS=branch.arguments)
        if returns(statement):
            self.body += _HAND_ON.fill(statement)
            self.ended = True
        elif branch.raises:
            self.body += _RAISED.fill(statement)
        self.raises |= branch.raises
        for target, value in branch.results(statement):
            self._store(statement, [self._target(target)], value)

    def _falling(self, statement: ast.If) -> Branch:
        """A branch inside the side that falls through."""
        return assigning(statement, statement.body, statement.orelse, self)


def branch_of(sides: tuple[Side, Side], names: Sequence[str] = ()) -> Branch:
    """The branch that two sides make, each of which gives what is to be assigned to these names."""
    then, orelse = sides
    return Branch(sorted(then.reads | orelse.reads), then.body, orelse.body, names, then.raises or orelse.raises)


def assigning(
    at: ast.stmt,
    then: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    around: Side,
    needed: frozenset[str] | None = None,
    *,
    lazy: tuple[Sequence[Lazy], Sequence[Lazy]] = ((), ()),
    unread: frozenset[str] = frozenset(),
) -> Branch:
    """The branch of an ``if`` that falls through.

    around: what it stands in: another side, or one that does nothing and stands for the function.
    needed: the names that are read after it; None for all that it certainly binds.
    lazy: the attributes that each side creates, if they are not there.
    unread: the names that nobody reads where `then` is taken: they are what the other side gives.
    """
    slots = stored_in(then, orelse)
    stored = {slot.partition("[")[0].rpartition(".")[2] for slot in slots}
    if not stored.isdisjoint(each.attribute for created in lazy for each in created):
        raise Declined(OTHER_NAME, "an attribute that is created when it is first needed is assigned to once more")
    sides = around.inner(), around.inner()
    for side, created in zip(sides, lazy, strict=True):
        for each in created:
            side.create(each, at)
    for side, block in zip(sides, (then, orelse), strict=True):
        side.slots |= slots
        side.run(block)
    falling = [side for side in sides if not side.ended]
    if not falling:
        raise Declined(BOTH_RAISE, "both sides raise")
    for side, block in zip(sides, (then, orelse), strict=True):
        if side.ended:
            _check_shared(around, block, "raises")
    rewritten = {spelling for side in falling for spelling in side.rewritten}
    around.rewritten |= rewritten
    bound = NamesIn.code(*then, *orelse).bound | around.handed | rewritten
    perhaps = around.perhaps if needed is not None else frozenset()

    def is_read(spelling: str, side: Side) -> bool:
        return spelling not in unread or side is not sides[0]

    def is_bound(spelling: str, side: Side) -> bool:
        return spelling in side.bound | side.assigned | perhaps

    def given(spelling: str, side: Side) -> ast.expr:
        if not is_read(spelling, side):
            return unread_at(at, side, spelling)
        return _given(side, spelling, at) if is_bound(spelling, side) else expression("(GM.UNBOUND, None)", at)

    if needed is not None:
        names = sorted(bound & needed)
        alone = {each for each in names if not all(is_bound(each, side) for side in falling if is_read(each, side))}
        if handed_on := alone and alone & _handed_on(around.lowering.place.function, (*then, *orelse)):
            raise Declined(
                BOUND_ON_ONE_SIDE,
                f"`{min(handed_on)}` is bound on one side only, and given away later; bind it before the branch",
            )
    else:
        names = sorted(each for each in bound if all(is_bound(each, side) for side in falling if is_read(each, side)))
    around.perhaps -= (bound - {*names}) & around.behind  # the value at hand may be that of a step before
    for side in falling:
        side.give([given(each, side) for each in names], at)
    return branch_of(sides, names)


def _handed_on(function: Function, sides: Iterable[ast.stmt]) -> set[str]:
    """The names that the function reads, and does not ask then and there: Python fails where such a name is unbound.

    sides: where they are bound.
    """
    nodes = {*walk(function.node)} - {*walk(*sides)}
    asked = {operand for node in nodes for operand in _asked_by(node)}
    names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return {node.id for node in names if node not in asked} | function.flow.captured


def _asked_by(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Attribute(value) | ast.Subscript(value) | ast.UnaryOp(operand=value) | ast.AugAssign(value=value):
            return [value]
        case ast.BinOp(left=left, right=right):
            return [left, right]
    return []


def unread_at(at: ast.stmt, side: Side, spelling: str) -> ast.expr:
    """What a side gives for a name that nobody reads where it is taken: what that holds, if it is bound."""
    is_bound = spelling in side.bound | side.assigned
    value = side.value(name(spelling, at)) if is_bound else constant(None, at)
    return expression("(GM.UNREAD, A)", at, A=value)


def _given(side: Side, spelling: str, at: ast.stmt) -> ast.expr:
    """What a side gives for the name; `where.traced` knows by a flag that one is only asked for its truth."""
    value = side.value(name(spelling, at))
    return expression("(GM.FLAG, A)", value, A=value) if spelling.startswith(LEFT) else value


def returning(then: Sequence[ast.stmt], orelse: Sequence[ast.stmt], around: Side) -> Branch:
    """The branch of an ``if`` both sides of which end in a ``return``; the result is what they return."""
    sides, end = (around.inner(), around.inner()), around.lowering.place.statement
    slots = stored_in(then, orelse)
    for side, block in zip(sides, (then, orelse), strict=True):
        side.slots |= slots
        side.run(block)
        if not side.ended:
            side.give_back(None, end)
    _check_shared(around, [*then, *orelse], "returns")
    return branch_of(sides)


def _check_shared(around: Side, block: Sequence[ast.stmt], ends: str) -> None:
    """Raise Declined if a side that `ends`, and so hands on no names, binds one that other functions can see."""
    shared = NamesIn.code(*block).bound & around.lowering.place.function.flow.captured
    if shared:
        raise Declined(
            LEAVES_EARLY, f"a side that {ends} also assigns to `{min(shared)}`, which other functions can see"
        )


def valued(node: ast.IfExp, at: ast.stmt, around: Side) -> Branch:
    """The branch of a conditional expression; the result is its value."""
    then, orelse = around.inner(), around.inner()
    then.give([then.whole(node.body)], at)
    orelse.give([orelse.whole(node.orelse)], at)
    return branch_of((then, orelse))


def guarding(
    at: ast.stmt,
    failing: ast.stmt,
    around: Side,
    evaluated: ast.expr | None = None,
    raised: ast.expr | None = None,
) -> Branch:
    """The branch of a check: nothing if it holds, the exception that the statement `failing` raises if not.

    evaluated, raised: as `Side.fail` has them.
    """
    holds, fails = around.inner(), around.inner()
    holds.give([], at)
    fails.fail(failing, evaluated, raised)
    return branch_of((holds, fails))
