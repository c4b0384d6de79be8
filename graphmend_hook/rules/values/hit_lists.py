"""Lists of hits, and loops over them: ``for e in hits.nonzero(): ... torch.where(mask[e])``; [Sweep] rewrites them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...analysis.names import NamesIn
from ...analysis.scopes import ModuleScope, Place
from ...templates import OWN, Template, expression, name
from ..declined import Declined
from ..operators import TORCH
from . import steps

_LISTED = Template(
    """
if GM.compiling():
    STORED = HIT
    TARGET = CANDIDATES
    if LISTED is None:
        TARGET = AGAIN
        STORED = None
    else:
        STORED = HITS != 0
else:
    STORED = None
    ORIGINAL
"""
)
_LOOKED_UP = Template(
    """
if HITS is not None:
    TARGETS = GM.places(GM.chosen(MASK, HITS, PLACE), True)
else:
    ORIGINAL
"""
)
_BEGUN = Template("if HITS is not None:\n    GM.sweep_listed(INDEX)")
# What makes a list of its hits, and what gives every place instead: of numbers, and of rows of one number.
_NUMBERS = ("GM.candidates(HITS)", "HITS.nonzero(as_tuple=True)[0].tolist()")
_ROWS = ("GM.candidate_rows(HITS)", "GM.places(HITS, False)")


@dataclass(frozen=True)
class HitList:
    """An assignment of the hits in a tensor to a name, for one loop.

    hit: the tensor; made: how the list is made, one of the two above.
    look_up: the statement of the loop that looks up the rows of a place, by ``torch.where(mask)``.
    """

    listed: str
    hit: ast.expr
    made: tuple[str, str]
    loop: ast.For
    look_up: ast.Assign

    def _hits(self, at: ast.stmt, context: ast.expr_context | None = None) -> ast.Name:
        """The name under which rewritten code keeps the tensor."""
        return name(f"{OWN}hits_{self.listed}", at, context)

    def of_assignment(self, statement: ast.Assign) -> list[ast.stmt]:
        """What the assignment becomes."""
        hits = self._hits(statement)
        candidates, again = (expression(text, statement, HITS=hits) for text in self.made)
        return _LISTED.fill(
            statement,
            HIT=self.hit,
            HITS=hits,
            STORED=self._hits(statement, ast.Store()),
            CANDIDATES=candidates,
            TARGET=statement.targets[0],
            LISTED=name(self.listed, statement),
            AGAIN=again,
            ORIGINAL=statement,
        )

    def of_look_up(self, begins: bool) -> list[ast.stmt]:
        """What the look-up becomes; begins: the step begins there, and not with a question for its rows."""
        at = self.look_up
        (target,) = at.targets
        assert isinstance(target, ast.Tuple)
        assert isinstance(target.elts[0], ast.Name)
        assert isinstance(at.value, ast.Call)
        assert isinstance(self.loop.target, ast.Name)
        looked_up = _LOOKED_UP.fill(
            at,
            HITS=self._hits(at),
            TARGETS=target,
            MASK=at.value.args[0],
            PLACE=name(self.loop.target.id, at),
            ORIGINAL=at,
        )
        index = name(target.elts[0].id, at)
        return [*looked_up, *_BEGUN.fill(at, HITS=self._hits(at), INDEX=index)] if begins else looked_up


def made_at(place: Place, scope: ModuleScope) -> HitList | None:
    """The list that the statement at `place` makes; raises Declined."""
    statement = place.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, found = statement.targets[0], _hits(statement.value, scope)
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
        raise Declined("R02", f"`{target.id}` is used for something else than the loop")
    return HitList(target.id, *found, loop, look_up)


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


def _look_up_of(loop: ast.For, place: Place, scope: ModuleScope) -> ast.Assign | None:
    """The look-up in the loop, if the loop is nothing but a step, after what leaves its place as it is."""
    if loop.orelse or not isinstance(loop.target, ast.Name) or not steps.ends_in_adding(loop.body):
        return None
    for index, statement in enumerate(loop.body):
        if isinstance(statement, ast.Assign) and _looks_up(statement, scope):
            step = Place(place.function, loop.body, len(loop.body) - 1, place.inside_try, (*place.inside, loop))
            steps.check(loop.body[index:], step)
            return statement
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


def _hits(value: ast.expr, scope: ModuleScope) -> tuple[ast.expr, tuple[str, str]] | None:
    """The tensor `x` in ``x.nonzero(as_tuple=True)[0].tolist()``, or in ``x.nonzero()``, and which of them it is."""
    made, is_tuple = _ROWS, False
    match value:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Call() as found, slice=ast.Constant(value=0)), attr="tolist"
            ),
            args=[],
            keywords=[],
        ):
            made, is_tuple, value = _NUMBERS, True, found
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    options = {keyword.arg: keyword.value for keyword in value.keywords}
    of_torch = scope.imports.qualified(value.func).startswith(TORCH)
    if value.func.attr == "where" and of_torch:
        as_tuple: ast.expr = ast.Constant(True)
    elif value.func.attr in ("nonzero", "argwhere"):
        as_tuple = options.pop("as_tuple", ast.Constant(False))
    else:
        return None
    if options or not isinstance(as_tuple, ast.Constant) or as_tuple.value is not is_tuple:
        return None
    operands = value.args if of_torch else [value.func.value, *value.args]
    return (operands[0], made) if len(operands) == 1 else None


def _looks_up(statement: ast.Assign, scope: ModuleScope) -> bool:
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
