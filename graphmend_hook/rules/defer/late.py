"""Expressions of an effect that are computed when it is delivered, of texts and numbers read where it stands.

``log.info("%d of %d", self.step + 1, len(self.names))``: to compute while tracing would guard on what is read.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass

from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, constant, expression, name

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "repr", "round", "sorted", "str", "sum"})
_METHODS = frozenset(  # of texts and dicts, without effect
    {"capitalize", "center", "format", "get", "join", "ljust", "lower", "lstrip", "replace", "rjust", "rstrip"}
    | {"split", "strip", "title", "upper", "zfill"}
)
_NEVER_FAILING = frozenset({"bool", "len", "repr", "str"})
_MADE_OF_PARTS = (ast.Attribute, ast.BoolOp, ast.Constant, ast.IfExp, ast.List, ast.Name, ast.Tuple)
_NAMESPACES = frozenset({"__dict__", "_buffers", "_modules", "_parameters"})  # that change with an attribute
_LATE = "VALUE if (VALUE := GM.late(lambda NAMES: BODY, (READS,), (SIZED,), CHECKED)) is not None else NOW"
_FALLBACK = "GM.not_late()"


@dataclass
class Late:
    """An expression over names that stand for what it reads.

    reads: chains of attributes, each once; sized: of which of them is nothing asked but the length.
    may_fail: may some texts and numbers make it fail?
    """

    body: ast.expr
    reads: dict[str, ast.expr]
    sized: dict[str, bool]
    may_fail: bool

    def emit(self, reads: list[ast.expr], now: ast.expr | None, checked: bool) -> ast.expr:
        """The value, or what computes it at delivery.

        reads: the chains as they are to be read; now: the expression where it cannot wait, None where that is no help.
        checked: it may wait only where it does not fail, because what stands behind it would not be reached.
        """
        at = self.body
        return expression(
            _LATE,
            at,
            VALUE=f"{OWN}late",
            NAMES=[_name(index) for index in range(len(reads))],
            BODY=self.body,
            READS=reads,
            SIZED=[constant(sized, at) for sized in self.sized.values()],
            CHECKED=constant(checked and self.may_fail, at),
            NOW=expression(_FALLBACK, at) if now is None else now,
        )


def late(node: ast.expr, is_builtin: Callable[[ast.Name], bool]) -> Late | None:
    """The expression taken apart; None where it is a chain, a constant, or holds what may only be computed in place."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        return None
    parts = _Parts(is_builtin)
    try:
        body = parts.computed(node)
    except _OtherError:
        return None
    return Late(body, parts.reads, parts.sized, parts.may_fail) if parts.reads else None


def is_builtin_in(place: Place, scope: ModuleScope) -> Callable[[ast.Name], bool]:
    """Says of a name at the place whether it is that of Python's builtin."""
    return lambda node: scope.names_one_of(node, {node.id}, place.function)


class _OtherError(Exception):
    """The expression is of another form."""


class _Parts:
    """Copies expressions, with names of ours in the place of the chains that they read."""

    def __init__(self, is_builtin: Callable[[ast.Name], bool]) -> None:
        self.reads: dict[str, ast.expr] = {}
        self.sized: dict[str, bool] = {}
        self.may_fail = False
        self._is_builtin = is_builtin

    def computed(self, node: ast.expr) -> ast.expr:
        self.may_fail |= self._may_fail(node)
        match node:
            case ast.Constant():
                return node
            case ast.Name() | ast.Attribute():
                return self._read(node)
            case ast.BinOp(left, op, right) if isinstance(op, _OPERATORS):
                return _at(node, ast.BinOp(self.computed(left), op, self.computed(right)))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                return _at(node, ast.UnaryOp(node.op, self.computed(operand)))
            case ast.Subscript(container, index) if isinstance(node.ctx, ast.Load):
                return _at(node, ast.Subscript(self.computed(container), self._index(index), ast.Load()))
            case ast.IfExp(test, ast.Constant() as body, ast.Constant() as orelse):
                return _at(node, ast.IfExp(self.computed(test), body, orelse))
            case ast.BoolOp(op, [first, *rest]) if all(isinstance(each, ast.Constant) for each in rest):
                return _at(node, ast.BoolOp(op, [self.computed(first), *rest]))
            case ast.Tuple(items) | ast.List(items):
                return _at(node, type(node)([self.computed(item) for item in items], ast.Load()))
            case ast.JoinedStr(parts):
                return _at(node, ast.JoinedStr([self._part(part) for part in parts]))
            case ast.Call(func, arguments, []):
                return _at(node, ast.Call(self._called(func), self._arguments(func, arguments), []))
        raise _OtherError

    def _may_fail(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(spelling)):
                return spelling not in _NEVER_FAILING
            case ast.JoinedStr(parts):
                return any(isinstance(part, ast.FormattedValue) and part.format_spec is not None for part in parts)
        return not isinstance(node, _MADE_OF_PARTS)

    def _called(self, func: ast.expr) -> ast.expr:
        if isinstance(func, ast.Name) and func.id in _BUILTINS and self._is_builtin(func):
            return func
        if isinstance(func, ast.Attribute) and func.attr in _METHODS:
            return _at(func, ast.Attribute(self.computed(func.value), func.attr, ast.Load()))
        raise _OtherError

    def _arguments(self, func: ast.expr, arguments: list[ast.expr]) -> list[ast.expr]:
        if isinstance(func, ast.Name) and func.id == "len" and len(arguments) == 1:
            (argument,) = arguments
            if isinstance(argument, (ast.Name, ast.Attribute)):
                return [self._read(argument, sized=True)]
        return [self.computed(argument) for argument in arguments]

    def _index(self, index: ast.expr) -> ast.expr:
        if isinstance(index, ast.Slice):
            bounds = [bound and self.computed(bound) for bound in (index.lower, index.upper, index.step)]
            return _at(index, ast.Slice(*bounds))
        return self.computed(index)

    def _part(self, part: ast.expr) -> ast.expr:
        if not isinstance(part, ast.FormattedValue):
            return part
        if part.format_spec is not None and not isinstance(part.format_spec, ast.JoinedStr):
            raise _OtherError
        spec = part.format_spec and self.computed(part.format_spec)
        return _at(part, ast.FormattedValue(self.computed(part.value), part.conversion, spec))

    def _read(self, node: ast.expr, sized: bool = False) -> ast.expr:
        """The name that stands for a chain of attributes that begins with a name."""
        root = node
        while isinstance(root, ast.Attribute) and root.attr not in _NAMESPACES:
            root = root.value
        if not isinstance(root, ast.Name):
            raise _OtherError
        text = ast.unparse(node)
        if text not in self.reads:
            self.reads[text] = copy.deepcopy(node)
        self.sized[text] = self.sized.get(text, True) and sized
        return name(_name([*self.reads].index(text)), node)


def _name(index: int) -> str:
    return f"{OWN}read_{index}"


def _at(place: ast.expr, made: ast.expr) -> ast.expr:
    return ast.copy_location(made, place)
