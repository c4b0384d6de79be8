"""Where [Value] asks: the expressions of a statement that read a number out of what may be a tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ...analysis.names import walk
from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint, is_comparison
from ..surroundings import OPERATIONS, evidence
from . import forms, sizes
from .forms import Question

_NUMBERS = frozenset({"bool", "float", "int", "range"})
_TRUTHS = frozenset({"all", "any"})  # of Python: they look at one item after the other
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Finder:
    """Finds the questions of a statement, by the identity of the expression that each stands for.

    updates: is the statement ``x[mask] += y``?
    """

    def __init__(self, place: Place, scope: ModuleScope) -> None:
        self._place, self._scope = place, scope
        self._evidence = evidence(place.function, scope)
        self.found: dict[int, Question] = {}
        self.updates = False

    def visit(self, root: ast.AST) -> None:
        if isinstance(self._place.statement, (ast.If, ast.While)):
            self._decisions(self._place.statement.test)
        for node in walk(root):
            look = _LOOKS.get(node.__class__)
            if look is not None:
                look(self, node)

    def _ask(self, node: ast.expr, question: Question) -> None:
        self.found.setdefault(id(node), question)

    def _ask_number(self, node: ast.expr) -> None:
        self._ask(node, Question("GM.known(A)", (node,)))

    def _decisions(self, test: ast.expr) -> None:
        for operand in _operands(test):
            if not forms.is_read(operand) and (
                self._evidence.of_test(operand) is not Taint.NO
                or self._compares_items(operand)
                or self._evidence.is_of_arrays(operand)
            ):
                self._ask(operand, Question("GM.decide(A)", (operand,)))

    def _compares_items(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Compare) or not is_comparison(node):
            return False
        sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Name)]
        ordered = all(isinstance(operator, _ORDERING) for operator in node.ops)
        return any(self._may_be_tensor(side) or (ordered and self._is_handed_in(side)) for side in sides)

    def _conditional(self, node: ast.IfExp) -> None:
        self._decisions(node.test)

    def _repeated(self, node: ast.BinOp) -> None:
        """``[0] * count``."""
        if (
            isinstance(node.op, ast.Mult)
            and isinstance(node.left, ast.List)
            and not isinstance(node.right, ast.Constant)
        ):
            self._ask_number(node.right)

    def _slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and (self._is_handed_in(bound) or self._may_be_tensor(bound)):
                self._ask_number(bound)

    def _compared(self, node: ast.Compare) -> None:
        """``list(x.size()) == [batch, count]``: items of lists are compared one by one."""
        for operand in (node.left, *node.comparators):
            if isinstance(operand, (ast.List, ast.Tuple)):
                for item in operand.elts:
                    if self._is_handed_in(item) or self._may_be_tensor(item):
                        self._ask_number(item)

    def _subscript(self, node: ast.Subscript) -> None:
        """``x[mask]``."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not any(map(self._evidence.may_be_mask, parts)):
            return
        statement = self._place.statement
        if isinstance(node.ctx, ast.Load):
            self._ask(node, Question("GM.taken(A, B)", (node.value, node.slice), may_fail=True))
        elif isinstance(statement, ast.AugAssign):
            self.updates = node is statement.target
        elif isinstance(statement, ast.Assign) and isinstance(node.ctx, ast.Store) and forms.is_chain(node.value):
            self._ask(node.slice, Question("GM.positions(A, B)", (node.value, node.slice)))

    def _call(self, call: ast.Call) -> None:
        qualified = self._scope.imports.qualified(call.func)
        if forms.is_read(call):
            assert isinstance(call.func, ast.Attribute)
            if not qualified.startswith(OPERATIONS.strangers):
                self._ask(call, Question(forms.READS[call.func.attr], (call.func.value,), may_fail=True))
        elif isinstance(call.func, ast.Name) and call.func.id in _NUMBERS:
            for argument in call.args if not call.keywords else ():
                if self._may_be_tensor(argument):
                    self._ask_number(argument)
        elif isinstance(call.func, ast.Name) and call.func.id in _TRUTHS:
            if len(call.args) == 1 and (self._evidence.may_be_mask(call.args[0]) or self._is_handed_in(call.args[0])):
                self._ask(call.args[0], Question("GM.elements(A)", (call.args[0],)))
        elif qualified == "itertools.groupby" and forms.is_grouped_read(call):
            self._ask(call, Question("GM.groupby(A, B)", tuple(call.args)))
        else:
            name, of_torch = forms.called(call, self._scope)
            shaped = forms.shaped_by_data(call, name, of_torch)
            if shaped and (name != "repeat_interleave" or self._may_be_tensor(shaped.operands[:2][-1])):
                self._ask(call, shaped)
            self._sizes(call, name, of_torch)

    def _sizes(self, call: ast.Call, name: str, of_torch: bool) -> None:
        """The arguments of the call that stand for numbers, and may be tensors."""
        for argument in sizes.arguments_of(call, name, of_torch):
            if (
                (name in sizes.TAKE_NOTHING_ELSE and self._is_handed_in(argument))
                or sizes.is_always_asked(name, argument)
                or self._may_be_tensor(argument)
            ):
                self._ask_number(argument)

    def _is_handed_in(self, node: ast.expr) -> bool:
        """Is it made of a parameter that nobody says the type of?"""
        if isinstance(node, ast.BinOp):
            return self._is_handed_in(node.left) or self._is_handed_in(node.right)
        return isinstance(node, ast.Name) and node.id in self._evidence.untyped

    def _may_be_tensor(self, node: ast.expr) -> bool:
        """May it be a tensor, or hold some?"""
        if isinstance(node, (ast.Tuple, ast.List)):
            return any(map(self._may_be_tensor, node.elts))
        if isinstance(node, ast.ListComp):
            return self._may_be_tensor(node.elt)
        if isinstance(node, (ast.Constant, ast.Starred, ast.Slice)) or forms.is_read(node):
            return False
        if self._evidence.of(node) is not Taint.NO:
            return True
        return isinstance(node, (ast.Name, ast.BinOp)) and any(
            isinstance(part, ast.Name) and part.id in self._evidence.items for part in walk(node)
        )


# By kind of node: what looks at it.
_LOOKS: dict[type[ast.AST], Callable[[Finder, Any], None]] = {
    ast.IfExp: Finder._conditional,
    ast.Call: Finder._call,
    ast.Subscript: Finder._subscript,
    ast.Compare: Finder._compared,
    ast.BinOp: Finder._repeated,
    ast.Slice: Finder._slice,
}


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    """The operands of a test whose truth Python asks for."""
    if isinstance(test, ast.BoolOp):
        for operand in test.values:
            yield from _operands(operand)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)
    else:
        yield test
