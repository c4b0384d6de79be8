"""What a function does with a number: is it used as a number alone, and not as a size, a place or a count of steps?

It says what is tried first, and no more: a number that is used as one alone need not be a symbol of the graph.
"""

from __future__ import annotations

import ast

from ...source.names import walk
from ...source.scopes import Function

_CALCULATING = frozenset({"abs", "bool", "float", "int", "max", "min", "round"})
_LISTS = (ast.List, ast.Tuple)
_KEEPING = frozenset({"append", "appendleft"})  # methods


def is_number_alone(node: ast.expr, function: Function) -> bool:
    """Is what the expression gives, and each name and attribute of the function that it is bound to, used so?"""
    return _Uses(function).is_number(node)


class _Uses:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._seen: set[str] = set()

    def is_number(self, node: ast.AST) -> bool:
        parent = self._function.parents.get(node)
        match parent:
            case ast.BinOp(left=left, right=right):
                return not isinstance(left, _LISTS) and not isinstance(right, _LISTS) and self.is_number(parent)
            case ast.UnaryOp() | ast.BoolOp() | ast.Tuple() | ast.List() | ast.Dict():
                return self.is_number(parent)
            case ast.IfExp(test=test):
                return node is test or self.is_number(parent)
            case ast.Compare(comparators=others):
                return not any(isinstance(each, _LISTS) for each in others)
            case ast.If() | ast.Assert() | ast.Return() | ast.FormattedValue():
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _CALCULATING:
                return self.is_number(parent)
            case ast.Call(func=ast.Name(id=name)) if name[:1].isupper():  # a class, of results say
                return True
            case ast.Call(func=ast.Attribute(attr=method)):
                return method in _KEEPING
            case ast.keyword():
                call = self._function.parents[parent]
                return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id[:1].isupper()
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                return self._is_bound(target, None)
            case ast.Assign(targets=[target]):
                return self._is_bound(target, node)
            case ast.NamedExpr(target=target):
                return self._is_bound(target, None) and self.is_number(parent)
        return False

    def _is_bound(self, target: ast.expr, value: ast.AST | None) -> bool:
        """Is it used so wherever the function reads what it binds?  value: what is unpacked, if anything is."""
        if isinstance(target, ast.Subscript):
            return True
        if isinstance(target, ast.Tuple):
            return isinstance(value, ast.Tuple) and all(self._is_bound(each, None) for each in target.elts)
        if not isinstance(target, (ast.Name, ast.Attribute)):
            return False
        bound = ast.unparse(target)
        if bound in self._seen:
            return True
        self._seen.add(bound)
        reads = [
            node
            for node in walk(self._function.node)
            if type(node) is type(target) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == bound
        ]
        return all(map(self.is_number, reads))
