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
    ``if top_x.numel() > 0:`` around the step.  ``for e in hits.nonzero(as_tuple=True)[0].tolist():`` goes over every
    place of `hits` while tracing, and the rows that ``torch.where(mask)`` looks up in the step are those of the mask
    where `hits` has a hit, none elsewhere.

Obligations proved here, each with its refusal
    GM105-R01  the step only assigns names, and adds at an index at its end
    GM105-R02  what the step assigns is not read after it
    GM105-R10  the function is no coroutine or generator
    GM105-R11  the function does not read its own frame
    GM105-R12  no other compiler compiles the function

Obligations checked on the traced values, each falling back to the original test (`runtime.sweeps`)
    GM105-T01 to GM105-T03, listed in `runtime.refusals`.

The native alternative, and what it loses
    ``torch._dynamo.config.capture_dynamic_output_shape_ops`` makes the number of rows a symbol; the question whether it
    is 0 breaks the graph, or fails under ``fullgraph=True``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analysis.names import NamesIn
from ..analysis.scopes import ModuleScope, Place
from ..diagnostics import Refusal
from ..templates import Template, expression, name
from .declined import Declined
from .operators import TORCH
from .surroundings import unsuitable

CODE = "GM105"
_EMPTY = (ast.Eq,)
_FILLED = (ast.Gt, ast.NotEq)
_ADDING = "index_add_"
_END = Template("if GM.compiling():\n    GM.swept()")
_LISTED = Template(
    """
if GM.compiling():
    STORED = HIT
    TARGET = GM.candidates(HITS)
    if LISTED is None:
        TARGET = HITS.nonzero(as_tuple=True)[0].tolist()
        STORED = None
else:
    STORED = None
    ORIGINAL
"""
)
_LOOKED_UP = Template(
    """
if HITS is not None:
    TARGETS = GM.places(GM.chosen(MASK, HITS, PLACE), True)
    GM.sweep(FIRST)
else:
    ORIGINAL
"""
)


@dataclass(frozen=True)
class Step:
    """A statement that takes part in a step, and what it becomes."""

    emitted: list[ast.stmt]


class Sweep:
    """Rewrites steps of loops that do nothing for no rows; see the module's docstring."""

    name = "sweep"
    version = 1
    fallback = False
    trigger = re.compile(rb"(?s)\A(?=.*\btorch\b).*\b" + _ADDING.encode() + rb"\b")

    def match(self, place: Place, scope: ModuleScope) -> Step | Refusal | None:
        try:
            emitted = _emitted(place, scope)
        except Declined as declined:
            return declined.refusal(CODE)
        if emitted is None:
            return None
        return unsuitable(place, scope, CODE) or Step(emitted)

    def rewrite(self, candidate: Step) -> list[ast.stmt]:
        return candidate.emitted


def _emitted(place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    statement = place.statement
    if isinstance(statement, ast.If):
        return _tested(statement, place)
    if isinstance(statement, ast.Expr):
        return _added(statement, place, scope)
    if isinstance(statement, ast.Assign):
        return _listed(statement, place, scope) or _looked_up(statement, place, scope)
    return None


def _tested(statement: ast.If, place: Place) -> list[ast.stmt] | None:
    """``if index.shape[0] == 0: continue`` before a step, or ``if index.numel() > 0:`` around it."""
    skipped, index = _test(statement)
    if index is None:
        return None
    step = place.block[place.index + 1 :] if skipped else statement.body
    if not _ends_in_adding(step):
        return None
    _check(step, place)
    swept = "GM.compiling() and GM.sweep(INDEX)"
    test = f"not ({swept}) and (TEST)" if skipped else f"({swept}) or (TEST)"
    asked = expression(test, statement, INDEX=index, TEST=statement.test)
    body = statement.body if skipped else [*statement.body, *_END.fill(statement.body[-1])]
    return [ast.copy_location(ast.If(asked, body, []), statement)]


def _added(statement: ast.Expr, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """The end of a step that is skipped by a test before it, or that is one of a loop over a list of hits."""
    if not _adds(statement) or place.index != len(place.block) - 1:
        return None
    if not any(_is_skipped_at(place, index) for index in range(place.index)) and _list_of_hits(place, scope) is None:
        return None
    return [statement, *_END.fill(statement)]


def _is_skipped_at(place: Place, index: int) -> bool:
    """Does a test at that index of the block skip the rest of it, as a step?"""
    statement = place.block[index]
    if not isinstance(statement, ast.If) or not _test(statement)[0]:
        return False
    try:
        return _tested(statement, replace(place, index=index)) is not None
    except Declined:
        return False


def _listed(statement: ast.Assign, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """``hits = x.nonzero(as_tuple=True)[0].tolist()``, for a loop further on in the block."""
    hit = _hits(statement.value, scope)
    target = statement.targets[0]
    if hit is None or len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return None
    loops = [
        each for each in place.block[place.index + 1 :] if isinstance(each, ast.For) and _goes_over(each, target.id)
    ]
    if len(loops) != 1 or _step_of(loops[0], place, scope) is None:
        return None
    _check_list(target.id, place)
    return _LISTED.fill(
        statement,
        HIT=hit,
        STORED=name("HITS", statement, ast.Store()),
        HITS=name("HITS", statement),
        TARGET=target,
        LISTED=name(target.id, statement),
        ORIGINAL=statement,
    )


def _looked_up(statement: ast.Assign, place: Place, scope: ModuleScope) -> list[ast.stmt] | None:
    """``idx, top_x = torch.where(mask)`` in a loop over a list of hits."""
    found = _list_of_hits(place, scope)
    if found is None or found is not statement:
        return None
    loop = place.inside[-1]
    assert isinstance(loop, ast.For)
    assert isinstance(loop.target, ast.Name)
    (target,) = statement.targets
    assert isinstance(target, ast.Tuple)
    assert isinstance(target.elts[0], ast.Name)
    assert isinstance(statement.value, ast.Call)
    return _LOOKED_UP.fill(
        statement,
        HITS=name("HITS", statement),
        TARGETS=target,
        MASK=statement.value.args[0],
        PLACE=name(loop.target.id, statement),
        FIRST=name(target.elts[0].id, statement),
        ORIGINAL=statement,
    )


def _list_of_hits(place: Place, scope: ModuleScope) -> ast.Assign | None:
    """The look-up of the step that `place` stands in, if its loop goes over a list of hits that `_listed` rewrites."""
    loop = place.inside[-1] if place.inside else None
    if not isinstance(loop, ast.For) or place.block is not loop.body:
        return None
    around = next((each for each in scope.places if each.statement is loop), None)
    if around is None or not isinstance(loop.iter, ast.Name):
        return None
    for index in reversed(range(around.index)):
        made = around.block[index]
        if isinstance(made, ast.Assign) and loop.iter.id in NamesIn.code(*made.targets).bound:
            return _step_of(loop, around, scope) if _listed(made, replace(around, index=index), scope) else None
    return None


def _step_of(loop: ast.For, place: Place, scope: ModuleScope) -> ast.Assign | None:
    """The look-up at the begin of the loop's step, if the loop is nothing but such a step."""
    if loop.orelse or not isinstance(loop.target, ast.Name) or not _ends_in_adding(loop.body):
        return None
    for index, statement in enumerate(loop.body):
        if not isinstance(statement, ast.Assign):
            return None
        if _is_look_up(statement, scope):
            step = Place(place.function, loop.body, len(loop.body) - 1, place.inside_try, (*place.inside, loop))
            _check(loop.body[index:], step)
            return statement
        if any(isinstance(node, ast.Call) for node in ast.walk(statement)):
            return None
    return None


def _check(step: Sequence[ast.stmt], place: Place) -> None:
    """Raise Declined unless the step assigns names of its own, and adds."""
    assigned: set[str] = set()
    for statement in step:
        if not (_adds(statement) or (isinstance(statement, ast.Assign) and all(map(_is_name, statement.targets)))):
            raise Declined("R01", f"the step contains `{ast.unparse(statement).splitlines()[0]}`")
        assigned |= NamesIn.code(statement).bound
    for statement in (step[-1], *place.inside[-1:]):
        read = assigned & place.function.flow.needed_after(statement)
        if read:
            raise Declined("R02", f"`{min(read)}`, which the step assigns, is read after it")


def _check_list(listed: str, place: Place) -> None:
    names = [node for node in ast.walk(place.function.node) if isinstance(node, ast.Name) and node.id == listed]
    if len(names) != 2:
        raise Declined("R02", f"`{listed}` is used for something else than the loop")


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _ends_in_adding(step: Sequence[ast.stmt]) -> bool:
    return bool(step) and _adds(step[-1])


def _adds(statement: ast.stmt) -> bool:
    """Is it ``name.index_add_(dim, index, source)``?"""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == _ADDING
        and isinstance(call.func.value, ast.Name)
        and len(call.args) == 3
        and not call.keywords
    )


def _test(statement: ast.If) -> tuple[bool, ast.expr | None]:
    """Is the step skipped by the test, rather than inside; and the index that the test asks about."""
    compared = statement.test
    if statement.orelse or not isinstance(compared, ast.Compare) or len(compared.ops) != 1:
        return False, None
    skips = len(statement.body) == 1 and isinstance(statement.body[0], ast.Continue)
    right = compared.comparators[0]
    if not isinstance(compared.ops[0], _EMPTY if skips else _FILLED):
        return skips, None
    if not isinstance(right, ast.Constant) or right.value != 0 or isinstance(right.value, bool):
        return skips, None
    return skips, _counted(compared.left)


def _counted(node: ast.expr) -> ast.expr | None:
    """The name `x` in ``x.shape[0]``, ``x.size(0)``, ``x.numel()`` and ``len(x)``."""
    text = ast.unparse(node)
    for form in (r"(\w+)\.shape\[0\]", r"(\w+)\.size\(0\)", r"(\w+)\.numel\(\)", r"len\((\w+)\)"):
        match = re.fullmatch(form, text)
        if match:
            return name(match[1], node)
    return None


def _goes_over(loop: ast.For, listed: str) -> bool:
    return isinstance(loop.iter, ast.Name) and loop.iter.id == listed


def _hits(value: ast.expr, scope: ModuleScope) -> ast.expr | None:
    """The tensor `x` in ``x.nonzero(as_tuple=True)[0].tolist()``."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=found, slice=ast.Constant(value=0)), attr="tolist")):
            if value.args or value.keywords or not isinstance(found, ast.Call):
                return None
        case _:
            return None
    options = {keyword.arg: keyword.value for keyword in found.keywords}
    as_tuple = options.pop("as_tuple", None)
    if options or not isinstance(found.func, ast.Attribute) or found.func.attr not in ("nonzero", "where"):
        return None
    of_torch = scope.imports.qualified(found.func).startswith(TORCH)
    is_where = found.func.attr == "where"
    if is_where == (as_tuple is not None) or not (of_torch or not is_where):
        return None
    if as_tuple is not None and not (isinstance(as_tuple, ast.Constant) and as_tuple.value is True):
        return None
    operands = found.args if of_torch else [found.func.value, *found.args]
    return operands[0] if len(operands) == 1 else None


def _is_look_up(statement: ast.Assign, scope: ModuleScope) -> bool:
    """Is it ``a, b = torch.where(mask)``?"""
    call, (target, *others) = statement.value, statement.targets
    return (
        not others
        and isinstance(target, ast.Tuple)
        and all(isinstance(each, ast.Name) for each in target.elts)
        and isinstance(call, ast.Call)
        and scope.imports.qualified(call.func) == f"{TORCH}where"
        and len(call.args) == 1
        and not call.keywords
    )
