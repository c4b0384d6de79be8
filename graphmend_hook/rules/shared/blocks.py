"""What the form of the sides tells: what they write to beside names, whether they return, log or raise."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard

from ...source.names import walk
from ...source.scopes import Place
from ..base import Declined
from .codes import LEAVES_EARLY

_LOOPS_AND_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


def is_item(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """Is it ``self.counts["bad"]``, an item by a text of what an attribute of a name holds?"""
    match node:
        case ast.Subscript(ast.Attribute(ast.Name()), ast.Constant(str())):
            return True
    return False


def stored_in(*blocks: Sequence[ast.stmt]) -> set[str]:
    """The attributes that the blocks assign to, and such items, as they are spelled."""
    nodes = [node for block in blocks for node in walk(*block)]
    slots = (node for node in nodes if isinstance(node, ast.Attribute) or is_item(node))
    return {ast.unparse(slot) for slot in slots if isinstance(slot.ctx, ast.Store)}


def passing(at: ast.stmt) -> ast.stmt:
    """``pass``, at that place."""
    return ast.copy_location(ast.Pass(), at)


def returns(statement: ast.stmt) -> bool:
    """Is there a ``return`` in it?"""
    return any(isinstance(node, ast.Return) for node in walk(statement))


# What does more than the statements of a side may do, or has handlers, which could catch what ends a trace.
_DOING_MORE = (
    *(ast.Return, ast.Raise, ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.NamedExpr),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Yield, ast.YieldFrom, ast.Await, ast.Try),
    *(ast.AsyncFor, ast.AsyncWith, getattr(ast, "Match", ast.Try), getattr(ast, "TryStar", ast.Try)),
)


def stays(statement: ast.stmt) -> bool:
    """Does control stay in the statement, a loop, a `with` or an `assert`, up to its end, and bind it only names?"""
    return not any(isinstance(node, _DOING_MORE) for node in walk(statement)) and not leaves_loop(statement)


def leaves_loop(node: ast.AST) -> bool:
    """Does it contain a ``break`` or ``continue`` of a loop around it?"""
    if isinstance(node, (ast.Break, ast.Continue)):
        return True
    if isinstance(node, (ast.For, ast.While)):
        return any(map(leaves_loop, node.orelse))
    return any(map(leaves_loop, ast.iter_child_nodes(node)))


def bound_for_certain(statement: ast.stmt) -> set[str]:
    """The names that a `with` binds in each case."""
    found: set[str] = set()
    for inner in statement.body if isinstance(statement, ast.With) else ():
        targets = inner.targets if isinstance(inner, ast.Assign) else []
        found |= {target.id for target in targets if isinstance(target, ast.Name)} | bound_for_certain(inner)
    return found


_LEAVING = (ast.Return, ast.Break, ast.Continue)


def raising_side(statement: ast.If) -> bool | None:
    """Which side always raises, that which is taken where the test is true, or the other; None if not just one does."""
    raising = (_always_raises(statement.body), _always_raises(statement.orelse))
    return raising[0] if raising[0] is not raising[1] else None


def _always_raises(block: Sequence[ast.stmt]) -> bool:
    """Does control leave the statements by an exception, and in no other way?"""
    if not block or any(isinstance(node, _LEAVING) for statement in block for node in walk(statement)):
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _always_raises(last.body) and _always_raises(last.orelse)
    return isinstance(last, ast.Raise) and last.exc is not None


def following(place: Place) -> list[ast.stmt]:
    """What follows an early return, up to the statement that leaves the function in any case."""
    tail = place.block[place.index + 1 :]
    inside = [*place.inside]
    while inside and not (tail and isinstance(tail[-1], (ast.Return, ast.Raise))):
        outer = inside.pop()
        if isinstance(outer, _LOOPS_AND_BLOCKS) or hasattr(outer, "handlers"):
            raise Declined(LEAVES_EARLY, "the branch returns from inside a loop, a `with` or a `try`")
        around = inside[-1] if inside else place.function.node
        block = next((block for block in _blocks_of(around) if outer in block), None)
        if block is None:
            raise Declined(LEAVES_EARLY, "the branch returns early, and what follows it does not end in a `return`")
        tail = [*tail, *block[block.index(outer) + 1 :]]
    return [*tail]


def _blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    return [block for block in (getattr(node, "body", None), getattr(node, "orelse", None)) if isinstance(block, list)]


def has_effect(*blocks: Sequence[ast.stmt]) -> bool:
    """Do they log or raise something?  No other call of a side is a statement of its own."""
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for block in blocks
        for node in walk(*block)
    )
