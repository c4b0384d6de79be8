"""[Grad] ``tensor.requires_grad = True`` is left out where nobody can tell.

What it does
    ``name.requires_grad = True`` and ``name.requires_grad_()``, as models have it so that activation checkpointing
    finds an input that requires a gradient: while tracing, it is not executed if the tensor requires one already, or if
    each operation on it gives what requires a gradient anyway, as a convolution does whose weights are trained, or
    runs without gradients.

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
    made without, and then told or not, as above. So is ``torch.zeros_like(other).requires_grad_()``, assigned or
    returned.

Obligations
    `codes` and `shared.codes` have them.  The tensor is made by the graph and does not leave it, each operation on it
    gives what requires a gradient, or runs without, nothing writes to it, and no traced function asks for one; where
    that is found wrong at the end, the trace starts anew as it is written.  Or it is an input of the graph that was not
    used before, which is told when the graph is called.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...diagnostics import Refusal
from ...source.names import walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import Filling, Template
from ..base import Ready, unsuitable
from ..defer.known_calls import FILLING

CODE = "GM106"
_TEMPLATE = Template(
    "if GM.compiling():\n    if not GM.is_trained_anyway(TENSOR):\n        TRACED\nelse:\n    ORIGINAL"
)
_MADE = Template(
    """
if GM.compiling():
    TEST = FLAG
    TENSOR = WITHOUT
    if TEST is not False and not (TEST is True and GM.is_trained_anyway(TENSOR)):
        TRACED
else:
    ORIGINAL
"""
)
_NEW = Template(
    """
if GM.compiling():
    TENSOR = MADE
    if not GM.is_trained_anyway(TENSOR):
        TENSOR.requires_grad_()
    END
else:
    ORIGINAL
"""
)
_END = Template("return TENSOR")
# What may be evaluated twice: it has no effect.
_PLAIN = (ast.Constant, ast.Name, ast.Tuple, ast.expr_context)


class Grad:
    """Rewrites assignments to `requires_grad`; see the module's docstring."""

    name = "grad"
    version = 4
    fallback = False
    triggers = (re.compile(rb"\brequires_grad(?:_\(|\s*=\s*(?!False\b))"),)

    def match(self, place: Place, scope: ModuleScope) -> Ready | Refusal | None:
        statement = place.statement
        told = _told(statement) or _made(statement, place, scope)
        if told is None or (told.tensor is not None and told.tensor not in place.function.hidden):
            return None
        refusal = unsuitable(place, scope, CODE)
        if refusal is not None:
            return refusal
        return Ready(told.template.fill(statement, ORIGINAL=statement, **told.holes))


@dataclass(frozen=True)
class _Told:
    """A statement by which a tensor is told to require a gradient."""

    template: Template
    tensor: str | None  # its name; None: it has none
    holes: dict[str, Filling]


def _told(statement: ast.stmt) -> _Told | None:
    """Is it a tensor that has been there before?"""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(ast.Name(tensor), "requires_grad")], value=ast.Constant(True)
        ) | ast.Expr(ast.Call(ast.Attribute(ast.Name(tensor), "requires_grad_"), [] | [ast.Constant(True)], [])):
            return _Told(_TEMPLATE, tensor, {"TENSOR": tensor, "TRACED": statement})
    return None


def _made(statement: ast.stmt, place: Place, scope: ModuleScope) -> _Told | None:
    """Is it one that the statement makes, by a function that fills a new tensor?"""
    tensor: str | None = None
    match statement:
        case ast.Return(ast.Call() as call):
            pass
        case ast.Assign(targets=[ast.Name(tensor)], value=ast.Call() as call):
            pass
        case _:
            return None
    made = _made_by(call)
    if not scope.names_one_of((made or call).func, FILLING, place.function):
        return None
    holes: dict[str, Filling] = {} if tensor is None else {"TENSOR": tensor}
    if made is not None:
        return _Told(_NEW, tensor, {**holes, "MADE": made, "END": _END.fill(statement) if tensor is None else []})
    flag = next((word.value for word in call.keywords[-1:] if word.arg == "requires_grad"), None)
    others = call.keywords[:-1]
    given = [*call.args, *(word.value for word in others)]
    if (
        tensor is None
        or not isinstance(flag, (ast.Name, ast.Attribute, ast.Constant))
        or not all(isinstance(node, _PLAIN) for value in given for node in walk(value))
    ):
        return None
    without = ast.copy_location(ast.Call(call.func, call.args, others), call)
    return _Told(_MADE, tensor, {**holes, "TRACED": statement, "FLAG": flag, "WITHOUT": without})


def _made_by(call: ast.Call) -> ast.Call | None:
    """The call that makes the tensor, in ``torch.zeros(...).requires_grad_()``."""
    match call:
        case ast.Call(ast.Attribute(ast.Call() as made, "requires_grad_"), [] | [ast.Constant(True)], []):
            return made
    return None
