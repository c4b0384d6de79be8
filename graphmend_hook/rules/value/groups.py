"""``itertools.groupby`` of numbers that are read out of a tensor, where a list of groups is as good as the iterator.

The iterator finds out about a group when it is asked for it, and forgets the one before.  Nobody can tell where the key
only computes with the numbers, and each group is made a list of before the next is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ...source.names import walk
from .forms import is_read

IsList = Callable[[ast.expr], bool]
_SURE = (ast.Add, ast.Sub, ast.Mult)  # operations on numbers that do not fail


def grouped_read(call: ast.Call) -> ast.Call | None:
    """What is grouped, ``x.tolist()`` or a call of one argument that has it, by a key that only computes; else None."""
    match call:
        case ast.Call(args=[ast.Call() as items, ast.Lambda() as key], keywords=[]) if _only_computes(key):
            inner = items.args[0] if len(items.args) == 1 and not items.keywords else items
            return items if is_read(items) or is_read(inner) else None
    return None


def _only_computes(key: ast.Lambda) -> bool:
    """Does it make something of its one argument and of constants, whatever else happens between two calls?"""
    match key.args:
        case ast.arguments(args=[ast.arg(arg=item)], posonlyargs=[], kwonlyargs=[], vararg=None, kwarg=None):
            return all(_computes(node, item) for node in walk(key.body))
    return False


def _computes(node: ast.AST, item: str) -> bool:
    match node:
        case ast.Name(id=spelling):
            return spelling == item
        case ast.BinOp(op=operator):
            return isinstance(operator, _SURE)
        case ast.Subscript(slice=ast.Constant(value=0 | 1)):
            return True
    return isinstance(node, (ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp))


def is_used_at_once(call: ast.Call, root: ast.AST, function: ast.AST, is_list: IsList) -> bool:
    """Is each group of the call, which is somewhere in `root`, made a list of at once, in its step of the loop?

    ``for key, group in groupby(...): group = list(group)``, ``[list(group) for key, group in groupby(...)]``

    is_list: is the expression the builtin `list`, or `tuple`?
    """
    for node in walk(root):
        if isinstance(node, ast.For) and node.iter is call:
            return _is_loop(node, function, is_list)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and node.generators[0].iter is call:
            group = _group(node.generators[0].target)
            is_plain = len(node.generators) == 1 and not node.generators[0].ifs
            listed = [_listed(part, is_list) for part in walk(node.elt)].count(group)
            return group != "" and is_plain and listed == _reads(group, node) == 1
    return False


def _is_loop(loop: ast.For, function: ast.AST, is_list: IsList) -> bool:
    group = _group(loop.target)
    for position, statement in enumerate(loop.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == group == _listed(value, is_list):
                return _reads(group, *loop.body[position:]) == _reads(group, function)
    return False


def _group(target: ast.expr) -> str:
    """The name of the group in ``key, group``."""
    match target:
        case ast.Tuple(elts=[ast.Name(), ast.Name(id=spelling)]):
            return spelling
    return ""


def _listed(node: ast.AST, is_list: IsList) -> str:
    """The name in ``list(name)``, else ""."""
    match node:
        case ast.Call(func=function, args=[ast.Name(id=spelling)], keywords=[]) if is_list(function):
            return spelling
    return ""


def _reads(spelling: str, *roots: ast.AST) -> int:
    """How often is that name read?"""
    names = [node for node in walk(*roots) if isinstance(node, ast.Name) and node.id == spelling]
    return sum(isinstance(name.ctx, ast.Load) for name in names)
