"""Exits of a loop that stand deeper in its body, made exits of the body itself, in the copy that is traced.

Before
    for step, layer in enumerate(layers):
        if step > 0:
            if x.norm() < self.least:
                break
            x = x + noise
        x = layer(x)

After
        LEFT = False
        if step > 0:
            LEFT = x.norm() < self.least
            if not LEFT:
                x = x + noise
        if LEFT:
            break
        x = layer(x)

Python does the same in both, and asks the test for its truth up to three times instead of once.  So only traced code
has the second form, and only where what ends the step may be data; the loop as it was written stands beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .names import DEFINITIONS, NamesIn, enclosed_in, walk
from .scopes import ModuleScope
from .taint import Taint, evidence_of
from .templates import OWN, Template, constant, name, replaced

_LEAVING = (ast.Break, ast.Continue, ast.Return)
_PARTS_WITH_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
LEFT = f"{OWN}left"  # how the names begin that say whether the loop is left
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FALSE = Template("LEFT = False")
_NONE = Template("KEPT = None")
_KEPT = Template("KEPT = VALUE")
_TESTED = Template("LEFT = TEST")
_LEFT = Template("if LEFT:\n    BODY")
_REST = Template("if not LEFT:\n    BODY")
_DONE_OR_REST = Template("if LEFT:\n    BODY\nelse:\n    REST")


class Lifted(ast.For):
    """Such a loop.  as_written: the loop of the program; block, index: where that stood; exits: those of the body."""

    as_written: ast.For
    block: list[ast.stmt]
    index: int
    exits: list[ast.If]

    def plain(self) -> ast.For:
        """As the class that everybody knows."""
        return ast.copy_location(ast.For(**dict(ast.iter_fields(self))), self)

    def restore(self) -> None:
        """Put the program's own loop back."""
        self.block[self.index] = self.as_written


class _Unknown(Exception):  # noqa: N818  control flow, not an error
    """An exit stands where it cannot be lifted from."""


def says_whether_left(statement: ast.stmt) -> bool:
    """Does it bind such a name to a test, which is to be lowered as one?"""
    match statement:
        case ast.Assign([ast.Name(spelling)]):
            return spelling.startswith(LEFT)
    return False


def lift(scope: ModuleScope) -> list[Lifted]:
    """Change the tree of the module so; gives the loops."""
    found: dict[ast.stmt, Lifted] = {}
    for place in scope.places:
        loop = place.statement
        if not isinstance(loop, ast.For) or not found.keys().isdisjoint(place.inside):
            continue
        if all(_is_exit(each) or not _leaves(each) for each in loop.body):
            continue
        evidence = evidence_of(place.function, scope)
        asked = [each.test for each in _tests_of_exits(loop.body) if evidence.of_test(each.test) is not Taint.NO]
        if not asked or any(map(evidence.is_drawn, asked)):  # decoders drop layers so, and those append to caches
            continue
        try:
            made = _lifted(loop)
        except _Unknown:
            continue
        made.block, made.index = place.block, place.index
        found[loop] = made
    for each in found.values():
        each.block[each.index] = each
    return [*found.values()]


def _is_exit(statement: ast.stmt) -> bool:
    """Is it an ``if`` without ``else`` that ends in an exit, the only one in it?"""
    is_one = isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], _LEAVING)
    return is_one and not any(map(_leaves, statement.body[:-1]))  # type: ignore[attr-defined]


def _leaves(statement: ast.stmt) -> bool:
    """Is it an exit of the loop around it, or contains one?"""
    return any(True for _ in _leaving_in(statement))


def _leaving_in(statement: ast.AST) -> Iterator[ast.AST]:
    """Those exits."""
    if isinstance(statement, _LEAVING):
        yield statement
    elif isinstance(statement, _LOOPS):  # it may return in there
        yield from (node for node in walk(statement) if isinstance(node, ast.Return))
        yield from (found for each in statement.orelse for found in _leaving_in(each))
    elif not isinstance(statement, DEFINITIONS):
        blocks = (each for each in ast.iter_child_nodes(statement) if isinstance(each, _PARTS_WITH_BLOCKS))
        yield from (found for each in blocks for found in _leaving_in(each))


def _tests_of_exits(block: Sequence[ast.stmt]) -> list[ast.If]:
    """The ``if`` statements that end in an exit on one of their sides."""
    branches = [node for node in walk(*block) if isinstance(node, ast.If)]
    return [
        each for each in branches if any(isinstance(side[-1], _LEAVING) for side in (each.body, each.orelse) if side)
    ]


def _lifted(loop: ast.For) -> Lifted:
    body: list[ast.stmt] = []
    for statement in _flat(loop.body):
        if _is_exit(statement) or not _leaves(statement):
            body.append(statement)
            continue
        left, leaving = f"{LEFT}{statement.lineno}_{statement.col_offset}", [*_leaving_in(statement)]
        if len({ast.dump(each) for each in leaving}) != 1:
            raise _Unknown
        kept = _kept_for(leaving[0], statement)
        body += _FALSE.fill(statement, LEFT=left)
        body += [_NONE.fill(statement, KEPT=each)[0] for each in kept.values()]
        body.append(_with_flag(statement, left, kept))
        body += _LEFT.fill(statement, LEFT=left, BODY=[_of_kept(leaving[0], kept)])
    made = Lifted(loop.target, loop.iter, body, loop.orelse, loop.type_comment)
    ast.copy_location(made, loop)
    made.as_written = loop
    made.exits = [each for each in body if isinstance(each, ast.If) and _is_exit(each) and each not in loop.body]
    return made


def _flat(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements, with what an ``if`` that leaves has in its ``else`` behind it: there the loop goes on."""
    return [part for statement in block for part in _flattened(statement)]


def _flattened(statement: ast.stmt) -> list[ast.stmt]:
    if not isinstance(statement, ast.If) or not statement.orelse:
        return [statement]
    test, body, orelse = statement.test, statement.body, statement.orelse
    if not isinstance(body[-1], _LEAVING):
        test, body, orelse = ast.copy_location(ast.UnaryOp(ast.Not(), test), test), orelse, body
    alone = ast.copy_location(ast.If(test, body, []), statement)
    return [alone, *_flat(orelse)] if _is_exit(alone) else [statement]


def _kept_for(leaving: ast.AST, statement: ast.stmt) -> dict[str, str]:
    """The names that a ``return`` reads and the statement binds, each with one of ours that is bound in any case."""
    if not isinstance(leaving, ast.Return) or leaving.value is None:
        return {}
    read, bound = NamesIn.code(leaving.value).read, NamesIn.code(statement).bound
    return {each: f"{OWN}kept{statement.lineno}_{each}" for each in sorted(read & bound)}


def _of_kept(leaving: ast.AST, kept: dict[str, str]) -> ast.AST:
    """The exit, which reads those names instead."""

    def renamed(node: ast.AST) -> ast.AST | None:
        return name(kept[node.id], node) if isinstance(node, ast.Name) and node.id in kept else None

    if kept and enclosed_in(leaving):
        raise _Unknown  # a name may be another one in a comprehension
    return replaced(leaving, renamed)


def _with_flag(statement: ast.stmt, left: str, kept: dict[str, str]) -> ast.stmt:
    """The statement, in which each exit sets the name instead."""
    if isinstance(statement, ast.If):
        parts = [_block(each, left, kept) for each in (statement.body, statement.orelse)]
        return ast.copy_location(ast.If(statement.test, *parts), statement)
    if isinstance(statement, ast.With):
        return ast.copy_location(ast.With(statement.items, _block(statement.body, left, kept)), statement)
    raise _Unknown


def _block(block: Sequence[ast.stmt], left: str, kept: dict[str, str]) -> list[ast.stmt]:
    statements = _flat(block)
    first = next((place for place, each in enumerate(statements) if _leaves(each)), None)
    if first is None:
        return statements
    made, statement = statements[:first], statements[first]
    if isinstance(statement, _LEAVING):
        tested = _TESTED.fill(statement, LEFT=left, TEST=constant(True, statement))
        return [*made, *_keeping(kept, statement), *tested]
    rest = _block(statements[first + 1 :], left, kept)
    if isinstance(statement, ast.If) and _is_exit(statement):
        tested = _TESTED.fill(statement, LEFT=left, TEST=statement.test)
        return [*made, *tested, *_keeping(kept, statement), *_done(statement, rest, left)]
    made.append(_with_flag(statement, left, kept))
    return [*made, *(_REST.fill(statement, LEFT=left, BODY=rest) if rest else ())]


def _keeping(kept: dict[str, str], at: ast.stmt) -> list[ast.stmt]:
    return [_KEPT.fill(at, KEPT=spelling, VALUE=each)[0] for each, spelling in kept.items()]


def _done(statement: ast.If, rest: list[ast.stmt], left: str) -> list[ast.stmt]:
    """What is done where the loop is left there, and what where it goes on."""
    if statement.body[:-1]:
        if rest:
            return _DONE_OR_REST.fill(statement, LEFT=left, BODY=statement.body[:-1], REST=rest)
        return _LEFT.fill(statement, LEFT=left, BODY=statement.body[:-1])
    return _REST.fill(statement, LEFT=left, BODY=rest) if rest else []
