"""``self.losses.append(loss.item())``: a list that grows with each call, and that the trace need not look at.

So it is with a deque, with ``self.log["loss"].append(...)``, with ``self.log.setdefault("loss", []).append(...)``, and
with lists of the module's and of a function around; and with ``self.predictions.extend(best.tolist())``.
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


_EXTENDED = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = LEAF
    if not GM.extended_behind(TARGET, VALUES):
        TARGET.extend(VALUES)
else:
    ORIGINAL
"""
)


def match(place: Place, statement: ast.Expr, scope: ModuleScope) -> Ready | None:
    """The append to what an object holds, which may wait for the end of the graph; None for anything else."""
    appends, extends = (appended_to(statement, place.function, method) for method in ("append", "extend"))
    owner, value = appends or extends or (None, None)
    if owner is None or value is None or isinstance(value, ast.Constant):
        return None
    if place.inside_try or unsuitable(place, scope, CODE) is not None:
        return None
    holes = {"RECEIVER": owner, "LEAF": reading(value), "ORIGINAL": statement}
    if appends is None:
        return Ready(_EXTENDED.fill(statement, **holes))
    return Ready(_KEPT.fill(statement, IS_NEW=constant(is_new(value), statement), **holes))


def appended_to(statement: ast.Expr, function: Function, method: str = "append") -> tuple[ast.expr, ast.expr] | None:
    """What the statement appends to that may be older than the call, and what it appends; None for anything else."""
    match statement.value:
        case ast.Call(func=ast.Attribute(value=owner, attr=called), args=[value], keywords=[]) if called == method:
            is_kept = not isinstance(value, ast.Starred) and _is_held(owner, function)
            return (owner, value) if is_kept else None
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
