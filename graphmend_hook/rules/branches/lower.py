"""Tests of data-dependent statements in a form that traced code may evaluate.

A test keeps Python's short-circuit where an operand turns out not to be a tensor, and combines the operands where it
does.  Inside a side, and in an operand that Python might not reach, its expressions are those of `speculated`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...analysis.names import root_name, walk
from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint
from ...templates import OWN, argument, constant, display, expression, name
from ..declined import Declined
from ..operators import ARITHMETIC, COMPARISONS, TORCH
from ..surroundings import evidence
from .speculated import Side

_MOST_OPERANDS = 4  # each may be evaluated early or in its turn, which is code for both


class Lowering:
    """Lowers the expressions of one statement."""

    def __init__(self, place: Place, scope: ModuleScope) -> None:
        self.place = place
        self.scope = scope
        self._evidence = evidence(place.function, scope)
        self._fresh = 0
        self._operands = 0

    def taint(self, node: ast.expr) -> Taint:
        return self._evidence.of_test(node)

    def test(self, node: ast.expr, side: Side | None = None) -> ast.expr:
        """`node` as a value with the same truth; evaluated speculatively where `side` is given."""
        if isinstance(node, ast.BoolOp):
            return self._short_circuit(node, node.values, side)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return expression("GM.negate(A)", node, A=self.test(node.operand, side))
        if isinstance(node, ast.Compare):
            return self._comparison(node, side)
        if isinstance(node, ast.Call):
            return self._test_call(node, side)
        return self._value(node, side)

    def _value(self, node: ast.expr, side: Side | None) -> ast.expr:
        return node if side is None else side.value(node)

    def _temporary(self, at: ast.expr) -> tuple[ast.Name, ast.Name]:
        self._fresh += 1
        spelling = f"{OWN}{self._fresh}"
        return name(spelling, at, ast.Store()), name(spelling, at)

    def _short_circuit(self, node: ast.BoolOp, operands: Sequence[ast.expr], side: Side | None) -> ast.expr:
        first, rest = operands[0], operands[1:]
        left = self.test(first, side)
        if not rest:
            return left
        right = self._short_circuit(node, rest, side)
        if self.taint(first) is Taint.NO:
            if side is None and self._compares_handed_in(first):
                try:
                    return self._lowered(node, first, rest, left, right)
                except Declined:
                    pass  # nothing speaks for a tensor but that it might be one
            if side is not None:
                left = expression("GM.plain(A)", first, A=left)
            return ast.copy_location(ast.BoolOp(node.op, [left, right]), node)
        if side is not None:
            return self._combined(node.op, first, left, right)
        return self._lowered(node, first, rest, left, right)

    def _lowered(
        self, node: ast.BoolOp, first: ast.expr, rest: Sequence[ast.expr], left: ast.expr, right: ast.expr
    ) -> ast.expr:
        early = Side(self)
        speculated = self._short_circuit(node, rest, early)
        return self._early(node.op, first, (left, right), early, speculated)

    def _compares_handed_in(self, node: ast.expr) -> bool:
        """Does it compare an item of a parameter that nobody says the type of?"""
        items = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        return any(isinstance(item, ast.Subscript) and root_name(item) in self._evidence.untyped for item in items)

    def _combined(self, operator: ast.boolop, at: ast.expr, left: ast.expr, right: ast.expr) -> ast.expr:
        """Inside a side: both operands, of which the right one may be evaluated in any case."""
        stored, loaded = self._temporary(at)
        assigned = ast.copy_location(ast.NamedExpr(stored, left), at)
        if isinstance(operator, ast.Or):
            return expression("GM.either(T, B) if GM.undecided(S) or not T else T", at, S=assigned, T=loaded, B=right)
        return expression("GM.both(T, B) if GM.undecided(S) or T else T", at, S=assigned, T=loaded, B=right)

    def _early(
        self,
        operator: ast.boolop,
        at: ast.expr,
        operands: tuple[ast.expr, ast.expr],
        early: Side,
        speculated: ast.expr,
    ) -> ast.expr:
        """Outside of sides: if the right operand cannot be evaluated early, Python looks at the left one first."""
        self._operands += 1
        if self._operands > _MOST_OPERANDS:
            raise Declined("R07", f"the test joins more than {_MOST_OPERANDS} tensors with `and` and `or`")
        stored, loaded = self._temporary(at)
        kept, result = self._temporary(at)
        parameters = sorted(early.reads)
        whole = expression(
            "R if GM.undecided(S) and (K := GM.early(JOIN, T, lambda: B, ARGUMENTS)) is not None else PLAIN",
            at,
            R=result,
            S=ast.copy_location(ast.NamedExpr(stored, operands[0]), at),
            K=kept,
            JOIN=expression("GM.either" if isinstance(operator, ast.Or) else "GM.both", at),
            T=loaded,
            B=speculated,
            ARGUMENTS=display([name(parameter, at) for parameter in parameters], at),
            PLAIN=ast.copy_location(ast.BoolOp(operator, [loaded, operands[1]]), at),
        )
        call = next(part for part in walk(whole) if isinstance(part, ast.Lambda) and part.body is speculated)
        call.args.args = [argument(parameter, at) for parameter in parameters]
        return whole

    def _comparison(self, node: ast.Compare, side: Side | None) -> ast.expr:
        operations = [COMPARISONS.get(type(op)) for op in node.ops]
        if None in operations:
            return self._value(node, side)
        if len(node.ops) > 1:
            return self._value(node, side) if self.taint(node) is Taint.NO else self._chain(node, side)
        left, right = (self._operand(operand, side) for operand in (node.left, node.comparators[0]))
        if left is None and right is None:
            return self._value(node, side)
        numbers = constant((left is not None, right is not None), node)
        left = left or self._value(node.left, side)
        right = right or self._value(node.comparators[0], side)
        operation = constant(operations[0], node)
        return expression("GM.compare(NAME, A, B, NUMBERS)", node, NAME=operation, A=left, B=right, NUMBERS=numbers)

    def _chain(self, node: ast.Compare, side: Side | None) -> ast.expr:
        """``a < b < c`` as ``a < (T := b) and T < c``, where `c` may be evaluated early."""
        if len(node.ops) > 2:
            raise Declined("R01", "the test chains more than three operands; use `and`")
        stored, loaded = self._temporary(node)
        middle = self._value(node.comparators[0], side)
        shared = ast.copy_location(ast.NamedExpr(stored, middle), node.comparators[0])
        first = self._compared(node.ops[0], self._value(node.left, side), shared, side)
        last = node.comparators[1]
        if side is not None:
            return self._combined(ast.And(), node, first, self._compared(node.ops[1], loaded, side.value(last), side))
        early = Side(self)
        early.assigned.add(loaded.id)  # bound by the first comparison
        early.reads.add(loaded.id)
        speculated = self._compared(node.ops[1], loaded, early.value(last), early)
        plain = self._compared(node.ops[1], loaded, last, None)
        return self._early(ast.And(), node, (first, plain), early, speculated)

    @staticmethod
    def _compared(op: ast.cmpop, left: ast.expr, right: ast.expr, side: Side | None) -> ast.expr:
        if side is None:
            return ast.copy_location(ast.Compare(left, [op], [right]), left)
        return side.operated(COMPARISONS[type(op)], left, right)

    def _operand(self, node: ast.expr, side: Side | None) -> ast.expr | None:
        """An operand that Python would read out of a tensor, as a tensor of the same value; None for any other."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            left, right = self._operand(node.left, side), self._operand(node.right, side)
            if left is None and right is None:
                return None
            operation = constant(ARITHMETIC[type(node.op)], node)
            left, right = left or self._value(node.left, side), right or self._value(node.right, side)
            return expression("GM.calculate(NAME, A, B)", node, NAME=operation, A=left, B=right)
        if not isinstance(node, ast.Call) or node.keywords or node.args or not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "item":
            return expression("GM.number(A)", node, A=self._value(node.func.value, side))
        selection = node.func.value
        if node.func.attr == "numel" and isinstance(selection, ast.Subscript) and self.taint(node) is not Taint.NO:
            source, mask = self._value(selection.value, side), self._value(selection.slice, side)
            return expression("GM.count_selected(A, B)", node, A=source, B=mask)
        return None

    def counts_selection(self, test: ast.expr) -> bool:
        """Does it compare ``x[mask].numel()``, or what is calculated of it?"""
        return isinstance(test, ast.Compare) and any(
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "numel"
            and isinstance(part.func.value, ast.Subscript)
            and self.taint(part) is not Taint.NO
            for part in walk(test)
        )

    def _test_call(self, node: ast.Call, side: Side | None) -> ast.expr:
        qualified = self.scope.imports.qualified(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return self._value(node, side)
        if qualified == "bool" and len(node.args) == 1 and not node.keywords:
            return self.test(node.args[0], side)
        if qualified in ("torch.equal", "torch.allclose") and len(node.args) >= 2:
            return self._comparing(node, f"GM.{qualified.partition('.')[2]}", node.args, side)
        if isinstance(node.func, ast.Attribute) and not qualified.startswith(TORCH):
            if node.func.attr in ("equal", "allclose") and node.args:
                operands = [node.func.value, *node.args]
                return self._comparing(node, f"GM.{node.func.attr}_method", operands, side)
            if node.func.attr == "item" and not node.args and not node.keywords:
                return expression("GM.one_value(A)", node, A=self._value(node.func.value, side))
        return self._value(node, side)

    def _comparing(self, node: ast.Call, function: str, operands: Sequence[ast.expr], side: Side | None) -> ast.expr:
        call = expression(f"{function}()", node)
        assert isinstance(call, ast.Call)
        call.args = [self._value(operand, side) for operand in operands]
        call.keywords = [
            ast.copy_location(ast.keyword(keyword.arg, self._value(keyword.value, side)), keyword)
            for keyword in node.keywords
        ]
        return call
