"""[Grad] ``tensor.requires_grad = True`` is left out where nobody can tell.

What it does
    ``name.requires_grad = True`` and ``name.requires_grad_()``, as models have it so that activation checkpointing
    finds an input that requires a gradient: while tracing, it is not executed if the tensor requires one already, or if
    each operation on it gives what requires a gradient anyway, as a convolution does whose weights are trained.

Why Dynamo breaks there
    "setattr() on Tensor.requires_grad", and "requires_grad_() intermediate leaked as output": AOTAutograd drops it.

Before
    hidden_states.requires_grad = True

After
    if GM.compiling():
        if not GM.is_trained_anyway(hidden_states):
            hidden_states.requires_grad = True
    else:
        ...                                                 # as written

Also
    ``name = torch.zeros_like(other, requires_grad=self.training)``, and other functions that fill a new tensor: it is
    made without, and then told or not, as above.

Obligations proved here, each with its refusal
    GM106-R10, R11, R12 as those of GM102 (`where`)
    GM106-R17  the tensor is not written in place later, nor looked at as an object (`.grad`, hooks)
    GM106-R20  the function asks no tensor whether it requires a gradient

Obligations checked on the traced values
    GM106-T01  it is a plain tensor of floats, gradients are on, and no function transform is at work
    GM106-T02  it is made by the graph and does not leave it, each operation on it gives what requires a gradient, and
        no traced function asks for one; where that is found wrong at the end, the trace starts anew as it is written
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...analysis.names import walk
from ...analysis.scopes import ModuleScope, Place
from ...diagnostics import Refusal
from ...templates import Template
from ..base import Declined, Ready, unsuitable
from ..branches.identity import check_identity
from ..known_calls import FILLING

CODE = "GM106"
_TEMPLATE = Template(
    "if GM.compiling():\n    if not GM.is_trained_anyway(TENSOR):\n        TRACED\nelse:\n    ORIGINAL"
)
_MADE = Template(
    """
if GM.compiling():
    TEST = FLAG
    TENSOR = WITHOUT
    if TEST and not GM.is_trained_anyway(TENSOR):
        TRACED
else:
    ORIGINAL
"""
)
# What may be evaluated twice: it has no effect.
_PLAIN = (ast.Constant, ast.Name, ast.Tuple, ast.expr_context)


class Grad:
    """Rewrites assignments to `requires_grad`; see the module's docstring."""

    name = "grad"
    version = 2
    fallback = False
    triggers = (re.compile(rb"\brequires_grad(?:_\(|\s*=\s*(?!False\b))"),)

    def match(self, place: Place, scope: ModuleScope) -> Ready | Refusal | None:
        statement = place.statement
        made = _made(statement, place, scope)
        tensor = _told(statement) if made is None else made.tensor
        if tensor is None or tensor.id not in place.function.hidden:
            return None
        refusal = unsuitable(place, scope, CODE)
        if refusal is not None:
            return refusal
        if any(map(_asks, walk(place.function.node))):
            return Refusal(f"{CODE}-R20", "the function asks a tensor whether it requires a gradient")
        try:
            check_identity(place, [tensor.id], harmless="requires_grad_")
        except Declined as declined:
            return declined.refusal(CODE)
        if made is not None:
            return Ready(
                _MADE.fill(
                    statement,
                    ORIGINAL=statement,
                    TRACED=statement,
                    FLAG=made.flag,
                    WITHOUT=made.without,
                    TENSOR=tensor.id,
                )
            )
        return Ready(_TEMPLATE.fill(statement, ORIGINAL=statement, TENSOR=tensor, TRACED=statement))


@dataclass(frozen=True)
class _Made:
    """``tensor = torch.zeros(..., requires_grad=flag)``; without: the call without that."""

    tensor: ast.Name
    flag: ast.expr
    without: ast.Call


def _made(statement: ast.stmt, place: Place, scope: ModuleScope) -> _Made | None:
    match statement:
        case ast.Assign(
            targets=[ast.Name() as tensor],
            value=ast.Call(
                keywords=[
                    *others,
                    ast.keyword("requires_grad", (ast.Name() | ast.Attribute() | ast.Constant()) as flag),
                ]
            ) as call,
        ) if scope.names_one_of(call.func, FILLING, place.function):
            given = [*call.args, *(keyword.value for keyword in others)]
            if all(isinstance(node, _PLAIN) for value in given for node in walk(value)):
                return _Made(tensor, flag, ast.copy_location(ast.Call(call.func, call.args, others), call))
    return None


def _told(statement: ast.stmt) -> ast.Name | None:
    """The name of the tensor that is told to require a gradient."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(ast.Name() as tensor, "requires_grad")], value=ast.Constant(True)):
            return tensor
        case ast.Expr(ast.Call(ast.Attribute(ast.Name() as tensor, "requires_grad_"), [], [])):
            return tensor
        case ast.Expr(ast.Call(ast.Attribute(ast.Name() as tensor, "requires_grad_"), [ast.Constant(True)], [])):
            return tensor
    return None


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Load)
