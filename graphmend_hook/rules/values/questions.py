"""What [Value] asks for: the expressions of a statement that read a number out of what may be a tensor.

Such an expression has a question in its place: a call of the runtime, which gives what is known while tracing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...analysis.names import root_name, walk
from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint, is_comparison
from ...templates import expression, replaced
from ..operators import TORCH
from ..surroundings import OPERATIONS, evidence
from . import sizes

_READS = {"item": "GM.item(A)", "tolist": "GM.tolist(A)"}  # by method
_NUMBERS = frozenset({"bool", "float", "int", "range"})
_TRUTHS = frozenset({"all", "any"})  # of Python: they look at one item after the other
_SHAPED_BY_DATA = frozenset({"argwhere", "nonzero", "repeat_interleave", "unique", "unique_consecutive", "where"})
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Question:
    """An expression that reads a number, or has a shape that the data decides, and what is asked in its place.

    text: a call of the runtime, with the names A and B for `operands`.
    keyword: the argument that the answer becomes, of a call that otherwise stays; "" where the answer is all.
    original: what gives the value where there is no answer; "" where there always is one.
    whole: a call of the runtime that does both, for where nothing can be assigned.
    """

    text: str
    operands: tuple[ast.expr, ...]
    keyword: str = ""
    original: str = ""
    whole: str = ""


class Finder:
    """Finds the expressions of a statement that read a number out of what may be a tensor."""

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

    def _conditional(self, node: ast.IfExp) -> None:
        self._decisions(node.test)

    def _repeated(self, node: ast.BinOp) -> None:
        """``[0] * count``."""
        if (
            isinstance(node.op, ast.Mult)
            and isinstance(node.left, ast.List)
            and not isinstance(node.right, ast.Constant)
        ):
            self._ask("GM.known(A)", node.right)

    def _slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and (self._is_handed_in(bound) or self._may_be_tensor(bound)):
                self._ask("GM.known(A)", bound)

    def _ask(self, text: str, asked: ast.expr) -> None:
        self.found.setdefault(id(asked), Question(text, (asked,)))

    def _decisions(self, test: ast.expr) -> None:
        for operand in _operands(test):
            if not _is_read(operand) and (
                self._evidence.of_test(operand) is not Taint.NO
                or self._compares_items(operand)
                or self._evidence.is_of_arrays(operand)
            ):
                self._ask("GM.decide(A)", operand)

    def _compares_items(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Compare) or not is_comparison(node):
            return False
        sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Name)]
        ordered = all(isinstance(operator, _ORDERING) for operator in node.ops)
        return any(self._may_be_tensor(side) or (ordered and self._is_handed_in(side)) for side in sides)

    def _call(self, call: ast.Call) -> None:
        qualified = self._scope.imports.qualified(call.func)
        if _is_read(call):
            assert isinstance(call.func, ast.Attribute)
            if not qualified.startswith(OPERATIONS.strangers):
                method = call.func.attr
                question = Question(
                    _READS[method], (call.func.value,), original=f"A.{method}()", whole=f"GM.read('{method}', A)"
                )
                self.found.setdefault(id(call), question)
        elif isinstance(call.func, ast.Name) and call.func.id in _NUMBERS:
            for argument in call.args if not call.keywords else ():
                if self._may_be_tensor(argument):
                    self._ask("GM.known(A)", argument)
        elif isinstance(call.func, ast.Name) and call.func.id in _TRUTHS:
            if len(call.args) == 1 and (self._evidence.may_be_mask(call.args[0]) or self._is_handed_in(call.args[0])):
                self._ask("GM.elements(A)", call.args[0])
        elif qualified == "itertools.groupby" and _is_grouped_read(call):
            self.found.setdefault(id(call), Question("GM.groupby(A, B)", tuple(call.args)))
        elif isinstance(call.func, ast.Attribute) or qualified.startswith(TORCH):
            self._sizes(call, qualified)

    def _subscript(self, node: ast.Subscript) -> None:
        """``x[mask]``."""
        index = node.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not any(map(self._evidence.may_be_mask, parts)):
            return
        asked = outside_of_subscript(index)
        if isinstance(node.ctx, ast.Load):
            self.found.setdefault(
                id(node), Question("GM.taken(A, B)", (node.value, asked), original="A[B]", whole="GM.selected(A, B)")
            )
        elif isinstance(self._place.statement, ast.AugAssign):
            self.updates = node is self._place.statement.target
        elif (
            isinstance(self._place.statement, ast.Assign) and isinstance(node.ctx, ast.Store) and _is_chain(node.value)
        ):
            self.found.setdefault(id(index), Question("GM.positions(A, B)", (node.value, asked)))

    def _sizes_compared(self, node: ast.Compare) -> None:
        """``list(x.size()) == [batch, count]``: items of lists are compared one by one."""
        for operand in (node.left, *node.comparators):
            if isinstance(operand, (ast.List, ast.Tuple)):
                for item in operand.elts:
                    if self._is_handed_in(item) or self._may_be_tensor(item):
                        self._ask("GM.known(A)", item)

    def _shaped_by_data(self, call: ast.Call, name: str, of_torch: bool) -> bool:
        """``nonzero``, ``where`` of one tensor, ``repeat_interleave``."""
        if name not in _SHAPED_BY_DATA:
            return False
        receiver = [] if of_torch else [call.func.value]  # type: ignore[attr-defined]
        operands = [*receiver, *call.args]
        if any(isinstance(operand, ast.Starred) for operand in operands):
            return False
        if name in ("argwhere", "nonzero", "where") and len(operands) == 1:
            options = {keyword.arg: keyword.value for keyword in call.keywords}
            as_tuple = options.pop("as_tuple", ast.Constant(name == "where"))
            if not options and isinstance(as_tuple, ast.Constant) and (of_torch or name != "where"):
                as_tuple_ = f"as_tuple={bool(as_tuple.value)}"
                question = Question(
                    f"GM.nonzero(A, {as_tuple_})",
                    (operands[0],),
                    original=f"GM.torch_nonzero(A, {as_tuple_})",
                    whole=f"GM.places(A, {as_tuple_})",
                )
                self.found.setdefault(id(call), question)
            return True
        if name in ("unique", "unique_consecutive") and len(operands) == 1:
            self._distinct(call, name, operands[0], of_torch)
            return True
        if name == "repeat_interleave" and not any(keyword.arg in (None, "output_size") for keyword in call.keywords):
            options = {keyword.arg: keyword.value for keyword in call.keywords}
            counts = options.get("repeats") or operands[-1 if len(operands) == 1 else 1]
            if _is_chain(counts) and self._may_be_tensor(counts):
                self.found.setdefault(id(call), Question("GM.total(A)", (counts,), "output_size"))
            return True
        return False

    def _distinct(self, call: ast.Call, name: str, operand: ast.expr, of_torch: bool) -> None:
        options = {keyword.arg: keyword.value for keyword in call.keywords}
        counts = options.pop("return_counts", ast.Constant(False))
        if not options and isinstance(counts, ast.Constant):
            arguments = f"A, '{name}', {bool(counts.value)}"
            original = (
                f"GM.torch_distinct({arguments})"
                if of_torch
                else f"A.{name}({'return_counts=True' if counts.value else ''})"
            )
            self.found.setdefault(
                id(call),
                Question(
                    f"GM.distinct({arguments})", (operand,), original=original, whole=f"GM.all_distinct({arguments})"
                ),
            )

    def _sizes(self, call: ast.Call, qualified: str) -> None:
        """The arguments of the call that stand for numbers, and may be tensors."""
        of_torch = qualified.startswith(TORCH)
        name = qualified.rpartition(".")[2] or getattr(call.func, "attr", "")
        if self._shaped_by_data(call, name, of_torch):
            return
        positions = (sizes.FUNCTIONS if of_torch else sizes.METHODS).get(name, ())
        for position, argument in enumerate(call.args):
            if position in positions or sizes.ALL in positions:
                asked = name in sizes.ASKED and self._is_handed_in(argument)
                if asked or _is_always_asked(name, argument) or self._may_be_tensor(argument):
                    self._ask("GM.known(A)", argument)
        for keyword in call.keywords if positions else ():
            asked = _is_always_asked(name, keyword.value) or self._may_be_tensor(keyword.value)
            if asked and keyword.arg in sizes.KEYWORDS:
                self._ask("GM.known(A)", keyword.value)

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
        if isinstance(node, (ast.Constant, ast.Starred, ast.Slice)) or _is_read(node):
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
    ast.Compare: Finder._sizes_compared,
    ast.BinOp: Finder._repeated,
    ast.Slice: Finder._slice,
}


def _is_always_asked(function: str, argument: ast.expr) -> bool:
    parts = argument.elts if isinstance(argument, ast.Tuple) else [argument]
    return function in sizes.ALWAYS_ASKED and all(isinstance(part, ast.Name) for part in parts)


def _is_grouped_read(call: ast.Call) -> bool:
    """Is it ``groupby`` of what ``x.tolist()`` gives, perhaps counted, by a lambda?"""
    if len(call.args) != 2 or call.keywords or not isinstance(call.args[1], ast.Lambda):
        return False
    items = call.args[0]
    if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id == "enumerate":
        items = items.args[0] if len(items.args) == 1 else items
    return _is_read(items)


def _is_chain(node: ast.expr) -> bool:
    """Is it a name, or attributes and items of one: something that may be evaluated twice?"""
    return bool(root_name(node)) and not any(isinstance(part, ast.Call) for part in walk(node))


def outside_of_subscript(index: ast.expr) -> ast.expr:
    """The index as an expression of its own: slices are made by name."""

    def spelled(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Slice):
            return None
        bounds = [bound or ast.copy_location(ast.Constant(None), node) for bound in (node.lower, node.upper, node.step)]
        return expression("GM.slice(A, B, C)", index, **dict(zip("ABC", bounds, strict=True)))

    return replaced(index, spelled)


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    """The operands of a test whose truth Python asks for."""
    if isinstance(test, ast.BoolOp):
        for operand in test.values:
            yield from _operands(operand)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)
    else:
        yield test


def _is_read(node: ast.expr) -> bool:
    """Is it ``x.item()`` or ``x.tolist()``?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _READS
        and not node.args
        and not node.keywords
    )
