"""Lists of hits, and loops over them: ``for e in hits.nonzero(): ... torch.where(mask[e])``; [Sweep] rewrites them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...source.names import NamesIn
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, Template
from ..base import Declined
from ..value import forms
from . import steps
from .codes import READ_AFTER_STEP

# How a list is made of its hits, by what gives every place instead: as numbers, and as rows of one number.
_MADE = {"GM.candidates": "nonzero(as_tuple=True)[0].tolist()", "GM.candidate_rows": "nonzero()"}
_LISTED = {
    candidates: Template(
        f"""
if GM.compiling():
    HITS = HIT
    LISTED = {candidates}(HITS)
    if LISTED is None:
        LISTED = HITS.{made}
        HITS = None
    else:
        HITS = HITS != 0
else:
    HITS = None
    ORIGINAL
"""
    )
    for candidates, made in _MADE.items()
}
_LOOKED_UP = Template(
    """
if HITS is not None:
    TARGETS = GM.rows_at(MASK, HITS, PLACE)
else:
    ORIGINAL
"""
)
_BEGUN = Template("if HITS is not None:\n    GM.sweep_listed(INDEX)")


@dataclass(frozen=True)
class HitList:
    """An assignment of the hits in a tensor to a name, for one loop.

    hit: the tensor; candidates: what gives every place instead, a key of `_MADE`.
    look_up: the statement of the loop that looks up the rows of a place, by ``torch.where(mask)``.
    """

    listed: str
    hit: ast.expr
    candidates: str
    loop: ast.For
    look_up: ast.Assign
    mask: ast.expr

    def of_assignment(self, statement: ast.Assign) -> list[ast.stmt]:
        """What the assignment becomes."""
        listed = _LISTED[self.candidates]
        return listed.fill(statement, HITS=self._hits, LISTED=self.listed, HIT=self.hit, ORIGINAL=statement)

    def of_look_up(self, begins: bool) -> list[ast.stmt]:
        """What the look-up becomes; begins: the step begins there, and not with a question for its rows."""
        at, target = self.look_up, self.look_up.targets[0]
        names = {"HITS": self._hits, "PLACE": ast.unparse(self.loop.target)}
        statements = _LOOKED_UP.fill(at, **names, TARGETS=target, MASK=self.mask, ORIGINAL=at)
        if begins:
            index = ast.unparse(target).strip("()").split(",")[0]
            statements += _BEGUN.fill(at, HITS=self._hits, INDEX=index)
        return statements

    @property
    def _hits(self) -> str:
        """The name under which rewritten code keeps the tensor."""
        return f"{OWN}hits_{self.listed}"


def made_at(place: Place, scope: ModuleScope) -> HitList | None:
    """The list that the statement at `place` makes; raises Declined."""
    statement = place.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, found = statement.targets[0], _hits(statement.value, place, scope)
    if found is None or not isinstance(target, ast.Name):
        return None
    loops = [each for each in scope.places if _goes_over(each.statement, target.id) and each.function is place.function]
    if len(loops) != 1:
        return None
    loop = loops[0].statement
    assert isinstance(loop, ast.For)
    look_up = _look_up_of(loop, loops[0], scope)
    if look_up is None:
        return None
    names = [node for node in ast.walk(place.function.node) if isinstance(node, ast.Name) and node.id == target.id]
    if len(names) != 2:
        raise Declined(READ_AFTER_STEP, f"`{target.id}` is used for something else than the loop")
    return HitList(target.id, *found, loop, *look_up)


def around(place: Place, scope: ModuleScope) -> HitList | None:
    """The list that the loop goes over in whose body `place` is."""
    loop = place.inside[-1] if place.inside else None
    if not isinstance(loop, ast.For) or place.block is not loop.body or not isinstance(loop.iter, ast.Name):
        return None
    for each in scope.places:
        made = each.statement
        if each.function is not place.function or not isinstance(made, ast.Assign):
            continue
        if loop.iter.id in NamesIn.code(*made.targets).bound:
            return made_at(each, scope)
    return None


def _look_up_of(loop: ast.For, place: Place, scope: ModuleScope) -> tuple[ast.Assign, ast.expr] | None:
    """The look-up in the loop, and its mask, if the loop is a step and no more, but for what leaves its place alone."""
    if loop.orelse or not isinstance(loop.target, ast.Name) or not steps.ends_in_adding(loop.body):
        return None
    for index, statement in enumerate(loop.body):
        mask = _looked_up(statement, place, scope)
        if mask is not None and isinstance(statement, ast.Assign):
            step = Place(place.function, loop.body, len(loop.body) - 1, place.inside_try, (*place.inside, loop))
            steps.check(loop.body[index:], step)
            return statement, mask
        if not _is_prelude(statement, loop.target.id):
            return None
    return None


def _is_prelude(statement: ast.stmt, place: str) -> bool:
    """Does it only look at things, which may be done for a place without a hit, and leave `place` one?"""
    if isinstance(statement, ast.If):
        return steps.only_continues(statement) and not _calls(statement.test)
    if not isinstance(statement, ast.Assign):
        return False
    reads = (f"{place}[0]", f"{place}.item()", f"{place}[0].item()", f"int({place}.item())", f"int({place})")
    if ast.unparse(statement.value) in reads:
        return True
    return not _calls(statement) and place not in NamesIn.code(*statement.targets).bound


def _calls(node: ast.AST) -> bool:
    return any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)) for part in ast.walk(node))


def _goes_over(statement: ast.stmt, listed: str) -> bool:
    return isinstance(statement, ast.For) and isinstance(statement.iter, ast.Name) and statement.iter.id == listed


def _hits(value: ast.expr, place: Place, scope: ModuleScope) -> tuple[ast.expr, str] | None:
    """The tensor `x` in ``x.nonzero(as_tuple=True)[0].tolist()``, or in ``x.nonzero()``, and what gives every place."""
    match value:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Call() as found, slice=ast.Constant(value=0)), attr="tolist"
            ),
        ) if forms.is_read(value):
            tensor, candidates = _nonzero(found, True, place, scope), "GM.candidates"
        case _:
            tensor, candidates = _nonzero(value, False, place, scope), "GM.candidate_rows"
    return None if tensor is None else (tensor, candidates)


def _nonzero(value: ast.expr, as_tuple: bool, place: Place, scope: ModuleScope) -> ast.expr | None:
    """The tensor `x` in ``x.nonzero(as_tuple=as_tuple)``, or in another form of it."""
    if not isinstance(value, ast.Call):
        return None
    asked = forms.shaped_by_data(value, *forms.called(value, scope, place.function))
    return asked.operands[0] if asked and asked.text == f"GM.nonzero(A, {as_tuple})" else None


def _looked_up(statement: ast.stmt, place: Place, scope: ModuleScope) -> ast.expr | None:
    """The mask in ``a, b = torch.where(mask)``."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)]) if all(isinstance(each, ast.Name) for each in names):
            return _nonzero(statement.value, True, place, scope)
    return None
