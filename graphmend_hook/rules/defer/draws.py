"""``name = np.random.uniform(0, 1)``: a draw whose number is only ever compared, as layer drop does it.

It moves the state of numpy's own generator, so it has to be made; but in evaluation nobody looks at the number.  Then
it is a side effect like any other, and `defer` defers it.
"""

from __future__ import annotations

import ast

from ...diagnostics import Refusal
from ...source.names import walk
from ...source.scopes import Function, ModuleScope, Place
from ...source.templates import Template
from ..base import Ready, compiled_elsewhere
from .calls import CODE
from .codes import DRAW_NOT_COMPARED
from .known_calls import DRAWS

_DEFERRED = Template(
    """
if GM.tracing():
    TARGET = FUNCTION
    VALUES = (ARGUMENTS,)
    if GM.drawable(TARGET, VALUES):
        STORED = GM.draw(TARGET, VALUES)
    else:
        STORED = TARGET(*VALUES)
else:
    ORIGINAL
"""
)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.unaryop, ast.expr_context)

NEEDED = Refusal(
    DRAW_NOT_COMPARED,
    "the number is used elsewhere than left of < and its kin, or its call is not plain; draw it where it is used",
)


def match(place: Place, at: ast.Assign, call: ast.Call, scope: ModuleScope) -> Ready | Refusal | None:
    """The candidate for ``name = call``; None if it is no draw."""
    if not scope.names_one_of(call.func, DRAWS, place.function):
        return None
    target, function = at.targets[0], place.function
    if len(at.targets) > 1 or not isinstance(target, ast.Name) or not _is_plain(call):
        return NEEDED
    if function.is_async or function.reads_its_frame or compiled_elsewhere(place, scope, CODE):
        return NEEDED
    if not _is_only_compared(target.id, function):
        return NEEDED
    return Ready(_DEFERRED.fill(at, STORED=target, FUNCTION=call.func, ARGUMENTS=call.args, ORIGINAL=at))


def _is_plain(call: ast.Call) -> bool:
    return not call.keywords and all(isinstance(node, _PLAIN) for argument in call.args for node in walk(argument))


def _is_only_compared(name: str, function: Function) -> bool:
    """Is `name` read nowhere but on the left of ``<`` and its kin, and by no function inside this one?

    `traced_draws.Drawn` stands for the number, and this is all that it can do.
    """
    compared, read = 0, 0
    for node in walk(function.node):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return False
        if isinstance(node, ast.Name) and node.id == name:
            read += isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == name:
            compared += len(node.ops) == 1 and isinstance(node.ops[0], _COMPARED)
    return read == compared and name not in function.flow.captured
