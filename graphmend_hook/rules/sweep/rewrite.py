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
    ``if top_x.numel() > 0:`` around the step; ``out[top_x] = ...`` and ``out[top_x] += ...`` at its end.
    ``if mask.any():`` around a step that selects rows by the mask, or ``if mask.sum() == 0: continue`` before it: the
    rows of the mask are looked up once, and are what its name stands for in the step.
    A loop over ``hits.nonzero()`` or over ``hits.nonzero(as_tuple=True)[0].tolist()`` goes over every place of
    `hits` while tracing, and the rows that ``torch.where(mask)`` looks up in the step are those of the
    mask where `hits` has a hit, none elsewhere.

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
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...diagnostics import Refusal
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, Template, expression
from ..base import Declined, Ready, unsuitable
from . import hit_lists
from .steps import ADDING, adds, assigns_at, check, emptiness, ends_in_adding, lack_of_hits, only_indexes

CODE = "GM105"
_END = Template("if GM.compiling():\n    GM.swept()")
_ASKED = rb"[^\n]*(?:\.any\(\)|\.sum\(\)|\.numel\(\)|\.shape\[0\]|\.size\(0\)|\blen\(\w+\))[^\n]*:"
_ROWS = Template("KEPT = MASK\nROWS = GM.sweep_mask(MASK) if GM.compiling() else None")
_SELECT = Template("if ROWS is not None:\n    MASK = ROWS")
_RESTORE = Template("if ROWS is not None:\n    MASK = KEPT\n    GM.swept()")


@dataclass(frozen=True)
class Tested:
    """A test that skips a step, or has it inside: what is asked in its place, and what follows the body.

    before: what precedes the test; begin: how a step begins that the test has inside; after: one that it skips.
    """

    asked: ast.expr
    end: list[ast.stmt]
    before: Sequence[ast.stmt] = ()
    begin: Sequence[ast.stmt] = ()
    after: Sequence[ast.stmt] = ()

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        assert isinstance(mended, ast.If)
        test = ast.If(self.asked, [*self.begin, *mended.body, *self.end], [])
        return [*self.before, ast.copy_location(test, mended), *self.after]


class Sweep:
    """Rewrites steps of loops that do nothing for no rows; see the module's docstring."""

    name = "sweep"
    version = 6
    fallback = False
    triggers = (re.compile(rb"(?s)\A(?=.*(?:" + ADDING.encode() + rb"\b|\n *if " + _ASKED + rb")).*\btorch\b"),)

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
    if isinstance(statement, ast.Expr) or assigns_at(statement):
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
        return _hit(statement, place)
    called = [node.func for node in ast.walk(statement.test) if isinstance(node, ast.Call)]
    if not all(isinstance(node, ast.Attribute) or scope.names_one_of(node, {"len"}, place.function) for node in called):
        return None  # a `len` of the program's own
    step = place.block[place.index + 1 :] if skipped else statement.body
    if not ends_in_adding(step) or not (adds(step[-1]) or _is_in_a_loop(place)):
        return None
    check(step, place)
    swept = "GM.compiling() and GM.sweep(INDEX)"
    test = f"not ({swept}) and (TEST)" if skipped else f"({swept}) or (TEST)"
    asked = expression(test, statement, INDEX=index, TEST=statement.test)
    return Tested(asked, [] if skipped else _END.fill(statement.body[-1]))


def _hit(statement: ast.If, place: Place) -> Tested | None:
    """``if not mask.any(): continue`` before a step that selects rows by the mask, or ``if mask.any():`` around it.

    While tracing the rows are looked up once, and stand for the mask in the step.
    """
    skipped, mask = lack_of_hits(statement)
    step = place.block[place.index + 1 :] if skipped else statement.body
    if not isinstance(mask, ast.Name) or not ends_in_adding(step) or not _is_in_a_loop(place):
        return None
    if not only_indexes(mask.id, step) or place.inside_try or not _is_bound_before(mask.id, place):
        return None
    check(step, place)
    names = _own_names(mask.id)
    test = "ROWS is None and (TEST)" if skipped else "ROWS is not None or (TEST)"
    select = _SELECT.fill(statement, **names)
    return Tested(
        expression(test, statement, TEST=statement.test, ROWS=names["ROWS"]),
        [] if skipped else _RESTORE.fill(statement.body[-1], **names),
        before=_ROWS.fill(statement, **names),
        begin=() if skipped else select,
        after=select if skipped else (),
    )


def _is_bound_before(mask: str, place: Place) -> bool:
    """Does the block assign the mask before the test, as a local name, which may stand for its rows for a while?"""
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) for part in ast.walk(place.function.node)):
        return False
    assigned = [each for each in place.block[: place.index] if isinstance(each, ast.Assign)]
    return any(isinstance(target, ast.Name) and target.id == mask for each in assigned for target in each.targets)


def _own_names(mask: str) -> dict[str, str]:
    return {"MASK": mask, "ROWS": f"{OWN}rows_{mask}", "KEPT": f"{OWN}mask_{mask}"}


def _is_in_a_loop(place: Place) -> bool:
    return bool(place.inside) and isinstance(place.inside[-1], ast.For) and place.block is place.inside[-1].body


def _added(statement: ast.stmt, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """The end of a step that is skipped by a test before it, or that is one of a loop over a list of hits."""
    if not ends_in_adding([statement]) or place.index != len(place.block) - 1:
        return None
    for test in place.block[: place.index]:
        skipped, mask = lack_of_hits(test) if isinstance(test, ast.If) else (False, None)
        if skipped and isinstance(mask, ast.Name):
            with contextlib.suppress(Declined):
                if _tested(test, replace(place, index=place.block.index(test)), scope) is not None:  # type: ignore[arg-type]
                    return [statement, *_RESTORE.fill(statement, **_own_names(mask.id))]
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
