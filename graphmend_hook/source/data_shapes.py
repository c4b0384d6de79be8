"""Names whose sizes the data decides, as far as the text tells: ``rows = mask.nonzero().flatten()``, ``x[rows]``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

_SHAPING = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"})
_COUNTING = frozenset({"numel", "size", "__len__"})


def names_shaped_by_data(
    bindings: Iterable[tuple[str, ast.expr]],
    selects: Callable[[ast.expr], bool],
    gives: Callable[[ast.Call], bool],
) -> frozenset[str]:
    """The names that are bound to such tensors.  selects: may an index be a mask?  gives: does a function give one?"""
    pairs, found = [*bindings], set[str]()
    while True:
        before = len(found)
        found |= {target for target, value in pairs if _is_shaped(value, found, selects, gives)}
        if len(found) == before:
            return frozenset(found)


def _is_shaped(
    node: ast.expr,
    known: Collection[str],
    selects: Callable[[ast.expr], bool],
    gives: Callable[[ast.Call], bool],
) -> bool:
    match node:
        case ast.Name(spelling):
            return spelling in known
        case ast.Call(ast.Attribute(_, name) | ast.Name(name)) if name in _SHAPING:
            return True
        case ast.Call(ast.Attribute(_, "where"), [_], []):
            return True
        case ast.Call(ast.Attribute(owner)) as call:
            return gives(call) or _is_shaped(owner, known, selects, gives)
        case ast.Call() as call:
            return gives(call)
        case ast.Subscript(owner, index):
            is_picked = selects(index) or (isinstance(index, ast.Name) and index.id in known)
            return is_picked or _is_shaped(owner, known, selects, gives)
    return False


def counts(node: ast.expr, shaped: Collection[str]) -> bool:
    """Does it compare, or negate, how many rows such a name has: ``len(rows) == 0``, ``rows.shape[0]``?"""
    match node:
        case ast.Compare(left, _, [right]):
            return counts(left, shaped) or counts(right, shaped)
        case ast.UnaryOp(ast.Not(), operand):
            return counts(operand, shaped)
        case ast.Call(ast.Name("len"), [ast.Name(spelling)], []):
            return spelling in shaped
        case ast.Call(ast.Attribute(ast.Name(spelling), method)) if method in _COUNTING:
            return spelling in shaped
        case ast.Subscript(ast.Attribute(ast.Name(spelling), "shape")):
            return spelling in shaped
    return False
