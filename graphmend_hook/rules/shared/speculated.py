"""Expressions that may be evaluated though Python might not get to them: those of a side, the later parts of a test.

Every operation goes through a function of the runtime that first asks whether it can fail on the values that are
traced.
"""

from __future__ import annotations

import ast
import textwrap
from typing import Protocol

from ...source import tensor_ops
from ...source.names import item_of, root_of, unpacks
from ...source.scopes import ModuleScope, Place
from ...source.taint import TORCH
from ...source.templates import constant, expression, name
from ..base import Declined
from .codes import LOOKED_AT, MAY_BE_UNBOUND, NOT_SPECULABLE

# Operators, by the names that the module `operator` has for them.
ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.Invert: "invert",
    ast.USub: "neg",
    ast.UAdd: "pos",
}
COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
# Without effect and without failure on anything that is not tensor data.
_PLAIN_BUILTINS = frozenset({"isinstance", "len", "tuple", "type", "hasattr", "getattr", "callable"})
_VALUE_BUILTINS = frozenset({"bool", "float", "int", "max", "min", "range", "round", "str"})
_READING = frozenset({"bool", "float", "int"})  # which read the number of a tensor
# They give Python what only the graph knows, or look at the function that they stand in.
_NEVER = tensor_ops.REDUCTIONS_TO_PYTHON | {"super"}
_PLAIN_TORCH = frozenset({"torch.finfo", "torch.iinfo", "torch.Size", "torch.device", "torch.is_tensor"})


class Lowers(Protocol):
    """What makes tests fit for traced code (`lower.Lowering`).

    kept: the names that a test binds; is_open: does nothing speak for the test's being of tensors, nor against it?
    """

    scope: ModuleScope
    place: Place
    kept: set[str]
    is_open: bool

    def test(self, node: ast.expr, side: Speculation | None = None) -> ast.expr: ...

    def count_statement(self) -> None: ...


class Speculation:
    """Expressions that may be evaluated though Python might not get to them, and the names that they need.

    bound: the local names that are certainly bound before; assigned: those that have been bound since.
    reads: the names that are read of the function around.
    slots: the attributes and items that are assigned to; stored: the locals that stand for attributes it creates.
    """

    def __init__(self, lowering: Lowers, around: Speculation | None = None) -> None:
        self.lowering, self._scope, place = lowering, lowering.scope, lowering.place
        names = [function.names.bound | function.names.defined for function in place.function.lineage()]
        self._own, self._locals = names[0], frozenset().union(*names)
        before = around.bound | around.assigned if around else place.function.flow.bound_before(place.statement)
        self.bound: frozenset[str] = before
        self.assigned: set[str] = set()
        self.reads: set[str] = set()
        self._kept: set[str] = set()
        self.slots: set[str] = set(around.slots) if around else set()
        self.stored: dict[str, str] = dict(around.stored) if around else {}
        self._is_shared_before = around is not None and around.has_assigned_shared()

    def is_local(self, spelling: str) -> bool:
        """Is it a local name, of the function or of one around it?"""
        return spelling in self._locals

    def test(self, node: ast.expr) -> ast.expr:
        return self.lowering.test(node, self)

    def value(self, node: ast.expr) -> ast.expr:
        """`node` for speculative evaluation; raises Declined."""
        match node:
            case ast.Constant() | ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Invert(), operand=ast.Constant()):
                return node
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(container, index) if self.slots and ast.unparse(node) in self.slots:
                return expression("GM.current_item(A, I)", node, A=self.value(container), I=index)
            case ast.Subscript(container, index):
                return expression("GM.item_of(A, I)", node, A=self.value(container), I=self.value(index))
            case ast.Slice():
                parts = node.lower, node.upper, node.step
                bounds = [constant(None, node) if part is None else self.value(part) for part in parts]
                return expression("GM.slice(BOUNDS)", node, BOUNDS=bounds)
            case ast.Tuple() | ast.List():
                return ast.copy_location(type(node)([self.value(item) for item in node.elts], ast.Load()), node)
            case ast.Dict(keys, values) if all(isinstance(key, ast.Constant) for key in keys):
                return ast.copy_location(ast.Dict(keys, [self.value(value) for value in values]), node)
            case ast.Call():
                return self._call(node)
            case ast.NamedExpr(ast.Name(spelling) as target, kept) if spelling in self.lowering.kept:
                self._kept.add(spelling)
                return ast.copy_location(ast.NamedExpr(target, self.value(kept)), node)
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.UnaryOp(ast.Not(), operand):
                return expression("not GM.plain(A)", node, A=self.value(operand))
            case ast.UnaryOp(op, operand) if type(op) in ARITHMETIC:
                return self._operated(ARITHMETIC[type(op)], operand)
            case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
                return self._operated(ARITHMETIC[type(op)], left, right)
            case ast.BinOp(left, ast.MatMult(), right) if self.is_left_to_the_trace():
                return expression("GM.called(GM.matmul, A, B)", node, A=self.value(left), B=self.value(right))
            case ast.Compare(left, [op], [right]) if type(op) in COMPARISONS:
                return self._operated(COMPARISONS[type(op)], left, right)
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [right]):
                searched = expression("GM.inert(B)" if self.has_assigned_shared() else "B", node, B=self.value(right))
                found = expression("GM.plain(A) in GM.plain(B)", node, A=self.value(left), B=searched)
                return found if isinstance(op, ast.In) else expression("not A", node, A=found)
            case ast.Compare(left, ops, others) if all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
                if not any(isinstance(operand, ast.Constant) for operand in (left, *others)):
                    raise Declined(LOOKED_AT, "a side compares by identity")
                operands = [self.value(operand) for operand in others]
                return ast.copy_location(ast.Compare(self.value(left), ops, operands), node)
            case ast.BoolOp(op, [*values, last]):
                operands = [expression("GM.plain(A)", value, A=self.value(value)) for value in values]
                return ast.copy_location(ast.BoolOp(op, [*operands, self.value(last)]), node)
            case ast.IfExp(test, body, orelse):
                decided = expression("GM.plain(A)", test, A=self.test(test))
                return ast.copy_location(ast.IfExp(decided, self.value(body), self.value(orelse)), node)
        raise Declined(NOT_SPECULABLE, f"`{_text(node)}` may only be evaluated if its side is taken")

    def _operated(self, operation: str, *operands: ast.expr) -> ast.expr:
        """The operator of that name in the module `operator`."""
        values = [self.value(operand) for operand in operands]
        return expression("GM.operate(GIVEN)", values[0], GIVEN=[constant(operation, values[0]), *values])

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._locals:
            if node.id in self._own and node.id not in self.bound and node.id not in self.assigned:
                raise Declined(MAY_BE_UNBOUND, f"`{node.id}` may be unbound where it would be read; assign it before")
            if node.id not in self.assigned:
                self.reads.add(node.id)
        elif node.id in self.lowering.kept and node.id not in self._kept:  # by the test, outside
            self.reads.add(node.id)
        return node

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        spelling = self.stored.get(ast.unparse(node)) if self.stored else None
        if spelling is not None:
            return self._stored(spelling, node)
        if self._scope.imports.qualified(node).startswith(TORCH):
            return self._of_module(node)
        call = "GM.unrelated(A, NAME)" if self.has_assigned_shared() else "GM.attribute(A, NAME)"
        if self.slots and ast.unparse(node) in self.slots:
            call = "GM.current(A, NAME)"
        attribute = self.lowering.place.function.attribute(node.attr)
        return expression(call, node, A=self.value(node.value), NAME=constant(attribute, node))

    def _stored(self, spelling: str, at: ast.expr) -> ast.expr:
        """The local that stands for what is assigned to."""
        if spelling not in self.assigned:
            self.reads.add(spelling)
        return name(spelling, at)

    def is_left_to_the_trace(self) -> bool:
        """May what no table knows be made here as it is?

        Something speaks for a tensor, and no name has been assigned to that other functions have.
        """
        return not (self.lowering.is_open or self.has_assigned_shared())

    def has_assigned_shared(self) -> bool:
        """Has a name been assigned to that other functions have?"""
        shared = self.lowering.place.function.flow.captured
        return self._is_shared_before or not self.assigned.isdisjoint(shared)

    def _of_module(self, node: ast.expr) -> ast.expr:
        """A name of a module as it stands; the module may be a local name."""
        self.value(root_of(node))
        return node

    def _call(self, node: ast.Call) -> ast.expr:
        if (owner := item_of(node)) is not None:
            return expression("GM.read_in_side(A)", node, A=self.value(owner))
        qualified = self._scope.imports.qualified(node.func)
        bare = qualified.rpartition(".")[2] or getattr(node.func, "attr", "")
        if self._is_reading(node):
            return expression("GM.read_in_side_by(F, A)", node, F=node.func, A=self.value(node.args[0]))
        function, arguments = self._called(node, qualified, bare)
        plain = "A"
        if function is node.func:
            plain = "GM.plain(A)" if qualified in _VALUE_BUILTINS else "A"
            plain = plain.replace("A", "GM.inert(A)") if self.has_assigned_shared() else plain
        arguments += [self._argument(argument, plain) for argument in node.args]
        keywords = [
            ast.copy_location(ast.keyword(keyword.arg, self._argument(keyword.value, plain)), keyword)
            for keyword in node.keywords
        ]
        return ast.copy_location(ast.Call(function, arguments, keywords), node)

    def _is_reading(self, node: ast.Call) -> bool:
        """Is it ``float(x)``, or another that would read the number of a tensor?"""
        is_plain = len(node.args) == 1 and not node.keywords and not unpacks(node)
        return is_plain and self._scope.names_one_of(node.func, _READING, self.lowering.place.function)

    def _argument(self, node: ast.expr, form: str) -> ast.expr:
        if isinstance(node, ast.Starred):
            return ast.copy_location(ast.Starred(self.value(node.value), ast.Load()), node)
        return expression(form, node, A=self.value(node))

    def _called(self, node: ast.Call, qualified: str, bare: str) -> tuple[ast.expr, list[ast.expr]]:
        """What is called in its place, and its arguments before those of the call."""
        func, in_torch = node.func, qualified.startswith(TORCH)
        if not unpacks(node):
            builtin = self._scope.names_one_of(func, _PLAIN_BUILTINS | _VALUE_BUILTINS, self.lowering.place.function)
            if builtin or qualified in _PLAIN_TORCH:
                return self._of_module(func) if in_torch else func, []
            if self._scope.names_one_of(func, {"abs"}, self.lowering.place.function) and not node.keywords:
                return expression("GM.operate", node), [constant("abs", node)]
            if bare in tensor_ops.SPECULABLE and _has_known_form(node, bare, in_torch):
                if in_torch:
                    return expression("GM.attempt", node), [constant(bare, node), self._of_module(func)]
                if isinstance(func, ast.Attribute):
                    return expression("GM.attempt_method", node), [constant(bare, node), self.value(func.value)]
        if not self.is_left_to_the_trace() or bare in _NEVER:
            raise Declined(NOT_SPECULABLE, f"the call of `{ast.unparse(func)}` may only be made if its side is taken")
        return expression("GM.called", node), [self.value(func)]


def _has_known_form(node: ast.Call, bare: str, in_torch: bool) -> bool:
    """Is it not one of the forms that do something else?"""
    if any(keyword.arg in ("out", "inplace", "alpha") for keyword in node.keywords):
        return False
    given = len(node.args) + len(node.keywords)
    if bare == "where":
        return given == (3 if in_torch else 2)
    return not (bare in tensor_ops.INPLACE and in_torch and len(node.args) > 1)


def _text(node: ast.expr) -> str:
    return textwrap.shorten(ast.unparse(node), 60, placeholder=" ...")
