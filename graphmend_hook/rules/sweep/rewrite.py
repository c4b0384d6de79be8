"""[Sweep] A loop over the hits in a mask makes every step, those with no hit on no rows, instead of asking which hit.

What it does
    Mixtures of experts loop over their experts, look up the rows of each, and add what it makes of them to a result.
    Whether there are any rows is asked first.  Without rows the step would add nothing: so, while tracing, it is made
    without asking, and the number of its rows is a symbol of the graph (see [Value]).

Why Dynamo breaks there
    Which experts are hit depends on data: "Data-dependent branching", "Could not guard on data-dependent expression
    Eq(u0, 0)", "Unsupported Tensor.tolist() call".

Before
    for expert_idx in range(self.num_experts):
        idx, top_x = torch.where(expert_mask[expert_idx])
        if top_x.shape[0] == 0:
            continue
        state = self.experts[expert_idx](hidden_states[top_x]) * routing_weights[top_x, idx, None]
        final_hidden_states.index_add_(0, top_x, state)

After
        if not (GM.compiling() and GM.sweep(top_x)) and top_x.shape[0] == 0:
            continue
        state = ...                                     # as written
        final_hidden_states.index_add_(0, top_x, state)
        if GM.compiling():
            GM.swept()

Also
    ``if top_x.numel() > 0:`` around the step.  A loop over ``hits.nonzero()`` or over
    ``hits.nonzero(as_tuple=True)[0].tolist()`` goes over every place of `hits` while tracing, and the rows that
    ``torch.where(mask)`` looks up in the step are those of the mask where `hits` has a hit, none elsewhere.

Gradients
    Weights that only steps without rows use have none in eager, and the graph would give them zeros: `dynamo.absent`.

Obligations
    `codes` and `shared.codes` have them.  Those checked while tracing fall back to the original test (`traced`).

The native alternative, and what it loses
    ``torch._dynamo.config.capture_dynamic_output_shape_ops`` makes the number of rows a symbol; the question whether it
    is 0 breaks the graph, or fails under ``fullgraph=True``.
"""

from __future__ import annotations

import ast
import contextlib
import re
from dataclasses import dataclass, replace

from ...diagnostics import Refusal
from ...source.scopes import ModuleScope, Place
from ...source.templates import Template, expression
from ..base import Declined, Ready, unsuitable
from . import hit_lists
from .steps import ADDING, adds, check, emptiness, ends_in_adding

CODE = "GM105"
_END = Template("if GM.compiling():\n    GM.swept()")


@dataclass(frozen=True)
class Tested:
    """A test that skips a step, or has it inside: what is asked in its place, and what follows the body."""

    asked: ast.expr
    end: list[ast.stmt]

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        assert isinstance(mended, ast.If)
        return [ast.copy_location(ast.If(self.asked, [*mended.body, *self.end], []), mended)]


class Sweep:
    """Rewrites steps of loops that do nothing for no rows; see the module's docstring."""

    name = "sweep"
    version = 5
    fallback = False
    triggers = (re.compile(rb"(?s)\A(?=.*" + ADDING.encode() + rb"\b).*\btorch\b"),)  # the rare word first

    def match(self, place: Place, scope: ModuleScope) -> Ready | Tested | Refusal | None:
        try:
            found = _found(place, scope)
        except Declined as declined:
            return declined.refusal(CODE)
        if found is None:
            return None
        return unsuitable(place, scope, CODE) or (found if isinstance(found, Tested) else Ready(found))


def _found(place: Place, scope: ModuleScope) -> list[ast.stmt] | Tested | None:
    statement = place.statement
    if isinstance(statement, ast.If):
        return _tested(statement, place, scope)
    if isinstance(statement, ast.Expr):
        return _added(statement, place, scope)
    if isinstance(statement, ast.Assign):
        made = hit_lists.made_at(place, scope)
        if made is not None:
            return made.of_assignment(statement)
        return _looked_up(statement, place, scope)
    return None


def _tested(statement: ast.If, place: Place, scope: ModuleScope) -> Tested | None:
    """``if index.shape[0] == 0: continue`` before a step, or ``if index.numel() > 0:`` around it."""
    skipped, index = emptiness(statement)
    if index is None:
        return None
    called = [node.func for node in ast.walk(statement.test) if isinstance(node, ast.Call)]
    if not all(isinstance(node, ast.Attribute) or scope.names_one_of(node, {"len"}, place.function) for node in called):
        return None  # a `len` of the program's own
    step = place.block[place.index + 1 :] if skipped else statement.body
    if not ends_in_adding(step):
        return None
    check(step, place)
    swept = "GM.compiling() and GM.sweep(INDEX)"
    test = f"not ({swept}) and (TEST)" if skipped else f"({swept}) or (TEST)"
    asked = expression(test, statement, INDEX=index, TEST=statement.test)
    return Tested(asked, [] if skipped else _END.fill(statement.body[-1]))


def _added(statement: ast.Expr, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """The end of a step that is skipped by a test before it, or that is one of a loop over a list of hits."""
    if not adds(statement) or place.index != len(place.block) - 1:
        return None
    if not _is_skipped(place, scope, range(place.index)) and hit_lists.around(place, scope) is None:
        return None
    return [statement, *_END.fill(statement)]


def _looked_up(statement: ast.Assign, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """``idx, top_x = torch.where(mask)`` in a loop over a list of hits."""
    found = hit_lists.around(place, scope)
    if found is None or found.look_up is not statement:
        return None
    return found.of_look_up(begins=not _is_skipped(place, scope, range(place.index + 1, len(place.block))))


def _is_skipped(place: Place, scope: ModuleScope, indices: range) -> bool:
    """Does a test at one of the indices of the block skip the rest of it, as a step?"""
    for index in indices:
        statement = place.block[index]
        if isinstance(statement, ast.If) and emptiness(statement)[0]:
            with contextlib.suppress(Declined):
                if _tested(statement, replace(place, index=index), scope) is not None:
                    return True
    return False
