"""``self.losses.append(loss.item())``: a list that grows with each call, and that the trace need not look at."""

from __future__ import annotations

import ast

from ...source.names import root_name
from ...source.scopes import ModuleScope, Place
from ...source.templates import Template
from ..base import Ready, unsuitable
from .calls import CODE, reading

_KEPT = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = (LEAF,)
    if not GM.kept_behind(TARGET, VALUES):
        TARGET.append(VALUES[0])
else:
    ORIGINAL
"""
)


def match(place: Place, statement: ast.Expr, scope: ModuleScope) -> Ready | None:
    """The append to an attribute of an object, which may wait for the end of the graph; None for anything else."""
    match statement.value:
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as owner, attr="append"), args=[value], keywords=[]):
            is_plain = root_name(owner) and not isinstance(value, (ast.Starred, ast.Constant))
            if is_plain and not place.inside_try and unsuitable(place, scope, CODE) is None:
                return Ready(_KEPT.fill(statement, RECEIVER=owner, LEAF=reading(value), ORIGINAL=statement))
    return None
