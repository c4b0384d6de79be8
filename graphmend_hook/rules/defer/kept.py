"""``self.losses.append(loss.item())``: a list that grows with each call, and that the trace need not look at.

So it is with a deque, with ``self.log["loss"].append(...)``, with ``self.log.setdefault("loss", []).append(...)``, and
with lists of the module's and of a function around; with ``self.predictions.extend(best.tolist())`` and
``self.losses += [loss.item()]``; with sets and counters that are updated, ``self.seen.update(labels.tolist())``; and
with what makes room again, ``self.recent.popleft()`` and ``self.losses.pop(0)``.
"""

from __future__ import annotations

import ast

from ...source.names import root_name
from ...source.scopes import Function, ModuleScope, Place
from ...source.templates import Template, constant
from ..base import Ready, unsuitable
from .calls import CODE, reading

_KEPT = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = (LEAF,)
    if not GM.kept_behind(TARGET, VALUES, IS_NEW):
        TARGET.append(VALUES[0])
else:
    ORIGINAL
"""
)


EXTEND = Template(
    """
TARGET = RECEIVER
VALUES = LEAF
if not GM.extended_behind(TARGET, VALUES):
    TARGET.extend(VALUES)
"""
)
_EXTENDED = Template("if GM.tracing():\n    EXTENDED\nelse:\n    ORIGINAL")


_UPDATED = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = LEAF
    if not GM.updated_behind(TARGET, VALUES):
        TARGET.update(VALUES)
else:
    ORIGINAL
"""
)
_ADDED = Template(
    """
if GM.tracing() and GM.holds_under_name(OWNER, NAME, TARGET := RECEIVER):
    VALUES = LEAF
    if not GM.extended_behind(TARGET, VALUES):
        TARGET += VALUES
        STORED = TARGET
else:
    ORIGINAL
"""
)


_REMOVE = """
if GM.tracing():
    TARGET = RECEIVER
    if not GM.removed_behind(TARGET):
        TARGET.{call}
else:
    ORIGINAL
"""
_REMOVED = {"pop": Template(_REMOVE.format(call="pop(0)")), "popleft": Template(_REMOVE.format(call="popleft()"))}


def match(place: Place, statement: ast.Expr, scope: ModuleScope) -> Ready | None:
    """The append to what an object holds, which may wait for the end of the graph; None for anything else."""
    removed, found = _removed_from(statement, place.function), changed_by(statement, place.function)
    if (removed is None and found is None) or place.inside_try or unsuitable(place, scope, CODE) is not None:
        return None
    if found is None:
        assert removed is not None
        owner, method = removed
        return Ready(_REMOVED[method].fill(statement, ORIGINAL=statement, RECEIVER=owner))
    owner, method, value = found
    if isinstance(value, ast.Constant):
        return None
    holes = {"RECEIVER": owner, "LEAF": reading(value)}
    if method == "update":
        is_read = ast.dump(holes["LEAF"]) != ast.dump(value)
        return Ready(_UPDATED.fill(statement, ORIGINAL=statement, **holes)) if is_read else None
    if method == "extend":
        return Ready(_EXTENDED.fill(statement, EXTENDED=EXTEND.fill(statement, **holes), ORIGINAL=statement))
    return Ready(_KEPT.fill(statement, ORIGINAL=statement, IS_NEW=constant(is_new(value), statement), **holes))


def match_sum(place: Place, statement: ast.AugAssign, scope: ModuleScope) -> Ready | None:
    """``self.losses += [loss.item()]``; None for anything else."""
    match statement:
        case ast.AugAssign(ast.Attribute(value=ast.Name()) as target, ast.Add(), ast.List([_, *_]) as added):
            pass
        case _:
            return None
    if any(isinstance(each, ast.Starred) for each in added.elts) or not _is_held(target, place.function):
        return None
    if place.inside_try or unsuitable(place, scope, CODE) is not None:
        return None
    stored = {"OWNER": target.value, "NAME": constant(target.attr, target), "STORED": target}
    read = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    holes = {"RECEIVER": read, "LEAF": reading(added), **stored}
    return Ready(_ADDED.fill(statement, ORIGINAL=statement, **holes))


def appended_to(statement: ast.Expr, function: Function) -> tuple[ast.expr, str, ast.expr] | None:
    """What the statement appends to, or extends, that may be older than the call; the method; and what it is given.

    None for anything else.
    """
    found = changed_by(statement, function)
    return found if found is not None and found[1] != "update" else None


def changed_by(statement: ast.Expr, function: Function) -> tuple[ast.expr, str, ast.expr] | None:
    """The same, also of what the statement updates."""
    match statement.value:
        case ast.Call(ast.Attribute(owner, "append" | "extend" | "update" as method), [value], []):
            is_kept = not isinstance(value, ast.Starred) and _is_held(owner, function)
            return (owner, method, value) if is_kept else None
    return None


def _removed_from(statement: ast.Expr, function: Function) -> tuple[ast.expr, str] | None:
    """What the first item is taken from, and how: ``self.recent.popleft()``, ``self.losses.pop(0)``."""
    match statement.value:
        case ast.Call(ast.Attribute(owner, "popleft"), [], []) if _is_held(owner, function):
            return owner, "popleft"
        case ast.Call(ast.Attribute(owner, "pop"), [ast.Constant(0)], []) if _is_held(owner, function):
            return owner, "pop"
    return None


def is_new(value: ast.expr) -> bool:
    """Does the expression make a tuple or a dict that nobody else has?"""
    return isinstance(value, (ast.Tuple, ast.Dict))


def _is_held(owner: ast.expr, function: Function) -> bool:
    """Is it an attribute, a name bound outside, an item, or what ``setdefault(k, [])`` of an attribute gives?"""
    match owner:
        case ast.Name(spelling):
            return spelling not in function.hidden
        case ast.Subscript(value=held):
            return isinstance(held, ast.Name) or _is_held(held, function)
        case ast.Call(
            ast.Attribute(ast.Attribute() as held, "setdefault"), [ast.Constant() | ast.Name(), ast.List([])], []
        ):
            return bool(root_name(held))
    return isinstance(owner, ast.Attribute) and bool(root_name(owner))
