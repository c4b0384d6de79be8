"""[Mask] Elements that a mask selects, and writes back to the same places, are merged where they stand.

What it does
    ``x[mask] = y[mask]`` gathers as many elements as the mask has, and scatters them.  The same values come of
    ``torch.where(mask, y, x)``, whose shape is known; it is written to `x` in place.

Why Dynamo breaks there
    How many elements are gathered depends on data: "Dynamic shape operator".

Before
    outputs[outside] = inputs[outside]
    total[mask] += part[mask]

After
    if GM.compiling():                                  # folded while tracing; one Python call otherwise
        if not GM.move(outputs, outside, inputs):
            outputs[outside] = GM.selected(inputs, outside)
    else:
        outputs[outside] = inputs[outside]              # as written

Obligations proved here, each with its refusal
    GM106-R10  the function is no coroutine or generator
    GM106-R11  the function does not read its own frame
    GM106-R12  no other compiler compiles the function

Obligations checked on the traced values, each falling back to the original statement (`traced_mask`)
    GM106-T01, listed in `codes`: one shape, dtype and device; a mask of bool that fits the first dimensions.

The native alternative, and what it loses
    ``torch._dynamo.config.capture_dynamic_output_shape_ops`` makes the number of elements a symbol, of which a backend
    knows nothing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analysis.scopes import ModuleScope, Place
from ...diagnostics import Refusal
from ...templates import Template, constant
from ..surroundings import evidence, unsuitable

CODE = "GM106"
_MOVED = Template(
    """
if GM.compiling():
    if not GM.move(OWNER, MASK, SOURCE):
        WRITTEN[CHOSEN] = GM.selected(SOURCE, CHOSEN)
else:
    ORIGINAL
"""
)
_UPDATED = Template("if not (GM.compiling() and GM.move(OWNER, MASK, SOURCE, OPERATION)):\n    ORIGINAL")
# What updates in place without a product, whose gradient could be 0 times infinity: the names that `operator` has.
_OPERATIONS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub"}


@dataclass(frozen=True)
class Move:
    """``owner[mask] = source[mask]``, or ``+=`` or ``-=``, of which `operation` is the name."""

    statement: ast.stmt
    owner: ast.Name
    mask: ast.expr
    source: ast.Name
    operation: str

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        at, holes = self.statement, {"OWNER": self.owner, "MASK": self.mask, "SOURCE": self.source}
        if self.operation:
            return _UPDATED.fill(at, **holes, OPERATION=constant(self.operation, at), ORIGINAL=at)
        return _MOVED.fill(at, **holes, WRITTEN=self.owner, CHOSEN=self.mask, ORIGINAL=at)


class Mask:
    """Rewrites elements moved under a mask; see the module's docstring."""

    name = "mask"
    version = 1
    fallback = False
    trigger = re.compile(rb"\btorch\b")

    def match(self, place: Place, scope: ModuleScope) -> Move | Refusal | None:
        found = _move(place.statement)
        if found is None or not _may_be_mask(found.mask, place, scope):
            return None
        return unsuitable(place, scope, CODE) or found


def _move(statement: ast.stmt) -> Move | None:
    """The move that the statement is, if it is one of plain names, which may be evaluated twice."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, operation = statement.targets[0], ""
    elif isinstance(statement, ast.AugAssign) and type(statement.op) in _OPERATIONS:
        target, operation = statement.target, _OPERATIONS[type(statement.op)]
    else:
        return None
    read = statement.value
    if not isinstance(target, ast.Subscript) or not isinstance(read, ast.Subscript):
        return None
    owner, mask, source = target.value, target.slice, read.value
    if not isinstance(owner, ast.Name) or not isinstance(source, ast.Name):
        return None
    if not _is_plain(mask) or ast.dump(mask) != ast.dump(read.slice):
        return None
    return Move(statement, owner, mask, source, operation)


def _is_plain(mask: ast.expr) -> bool:
    """Is it a name, its complement, or a comparison of names and constants?"""
    if isinstance(mask, ast.UnaryOp):
        return isinstance(mask.op, ast.Invert) and isinstance(mask.operand, ast.Name)
    if isinstance(mask, ast.Compare):
        return all(isinstance(operand, (ast.Name, ast.Constant)) for operand in (mask.left, *mask.comparators))
    return isinstance(mask, ast.Name)


def _may_be_mask(mask: ast.expr, place: Place, scope: ModuleScope) -> bool:
    known = evidence(place.function, scope)
    operand = mask.operand if isinstance(mask, ast.UnaryOp) else mask
    return known.may_be_mask(mask) or (isinstance(operand, ast.Name) and operand.id in known.untyped)
