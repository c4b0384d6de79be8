"""Expressions that may be evaluated though Python might not get to them: those of a side, the later parts of a test.

They stand as they were written, and are judged when they have been traced (`traced_calls`), but for what a rule owns:
numbers that are read, what is stored or tested in the side, and a row of a table that the data picks.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable
from typing import Protocol

from ...source import tensor_ops
from ...source.names import NamesIn, free_names, item_of, root_of, unpacks, walk
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, constant, expression, name, replaced
from ...source.unknown import TORCH
from ..base import Declined
from ..value.forms import Question, called, shaped_by_data
from .codes import LOOKED_AT, MAY_BE_UNBOUND, NOT_SPECULABLE

# Operators of ``name op= value``, by the names that the module `operator` has for them.
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
}
COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
# Of Python's values these may take any time and memory.
_GROWING: dict[type[ast.AST], str] = {ast.Mult: "mul", ast.Pow: "pow", ast.LShift: "lshift"}
_MOST = 100  # of a number that is multiplied by, or the exponent of a power, so that nobody need look
# Without effect and without failure on anything that is not tensor data.
_PLAIN_BUILTINS = frozenset({"isinstance", "len", "tuple", "type", "hasattr", "getattr", "callable"})
_VALUE_BUILTINS = frozenset({"bool", "float", "int", "max", "min", "range", "round", "str"})
_READS = {"item": "GM.read_in_side(A)", "tolist": "GM.read_list_in_side(A)"}  # by the method
_READING = frozenset({"bool", "float", "int"})  # which read the number of a tensor
# They give Python what only the graph knows, or look at the function that they stand in.
_NEVER = tensor_ops.REDUCTIONS_TO_PYTHON | {"super", "locals", "vars", "dir", "eval", "exec"}
# They have names of their own.
_CLOSED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SUSPENDING = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_PLAIN_TORCH = frozenset({"torch.finfo", "torch.iinfo", "torch.Size", "torch.device", "torch.is_tensor"})


class Lowers(Protocol):
    """What makes tests fit for traced code (`lower.Lowering`).

    kept: the names that a test binds.
    """

    scope: ModuleScope
    place: Place
    kept: set[str]

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
        self._outside: frozenset[str] = around._outside if around else self._scope.bound_outside(place.function)
        before = place.function.flow.bound_in_sides(place.statement) | self._outside
        self.bound: frozenset[str] = around.bound | around.assigned if around else before
        self.perhaps: frozenset[str] = frozenset()  # may be bound, which the trace will see
        self.assigned: set[str] = set()
        self.uncertain: set[str] = set()  # bound since, by a loop perhaps: else to read one fails, as in eager
        self.reads: set[str] = set()
        self._kept: set[str] = set()
        self._asked = 0  # how many names of ours hold operands of questions
        self.slots: set[str] = set(around.slots) if around else set()
        self.stored: dict[str, str] = dict(around.stored) if around else {}
        self._is_shared_before = around is not None and around.has_assigned_shared()

    def is_local(self, spelling: str) -> bool:
        """Is it a local name, of the function or of one around it?"""
        return spelling in self._locals

    def test(self, node: ast.expr) -> ast.expr:
        return self.lowering.test(node, self)

    def whole(self, node: ast.expr) -> ast.expr:
        """`value` of an expression that is part of no other: it is judged when it has been traced."""
        return self.judged(node, self.value(node))

    def judged(self, node: ast.expr, lowered: ast.expr) -> ast.expr:
        """`lowered`, which stands for `node`, judged when it has been traced."""
        plain = (ast.Name, ast.Constant, ast.Tuple, ast.List, ast.expr_context)
        if all(isinstance(part, plain) for part in ast.walk(node)):
            return lowered
        return expression("GM.judged(GM.begun(), A)", node, A=lowered)

    def value(self, node: ast.expr) -> ast.expr:
        """`node` for speculative evaluation; raises Declined."""
        match node:
            case ast.Constant():
                return node
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(container, index) if self.slots and ast.unparse(node) in self.slots:
                return expression("GM.current_item(A, I)", node, A=self.value(container), I=index)
            case ast.Subscript(container, index) if may_be_of_data(index):
                return expression("GM.item_in_side(A, I)", node, A=self.value(container), I=self.value(index))
            case ast.Call():
                return self._call(node)
            case ast.NamedExpr(ast.Name(spelling) as target, kept) if spelling in self.lowering.kept:
                self._kept.add(spelling)
                return ast.copy_location(ast.NamedExpr(target, self.value(kept)), node)
            case ast.BinOp(left, op, right) if type(op) in _GROWING and not _grows_little(node):
                values = [self.value(left), self.value(right)]
                return expression("GM.grown(GIVEN)", node, GIVEN=[constant(_GROWING[type(op)], node), *values])
            case ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.UnaryOp(ast.Not()):
                return self._decided(node)
            case _ if isinstance(node, _CLOSED):
                return self._closed(node)
            case _ if isinstance(node, _SUSPENDING):
                raise Declined(NOT_SPECULABLE, f"`{_text(node)}` may only be evaluated if its side is taken")
        return self._parts(node)

    def _parts(self, node: ast.expr) -> ast.expr:
        """The expression, with its parts for speculative evaluation."""
        shared = self.has_assigned_shared()
        if shared and isinstance(node, (ast.JoinedStr, ast.Set)):
            raise Declined(NOT_SPECULABLE, f"`{_text(node)}` may call a method that reads what the side assigns to")
        is_operation = shared and isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare))
        form = "GM.inert(A)" if is_operation else "A"

        def part(child: ast.AST) -> ast.AST | None:
            return expression(form, child, A=self.value(child)) if isinstance(child, ast.expr) else None

        made = copy.copy(node)
        for field in node._fields:
            setattr(made, field, _mapped(getattr(node, field, None), part))
        return made

    def _decided(self, node: ast.expr) -> ast.expr:
        """What Python decides: no tensor may be asked there."""
        match node:
            case ast.UnaryOp(ast.Not(), operand):
                return expression("not GM.plain(A)", node, A=self.value(operand))
            case ast.BoolOp(op, [*values, last]):
                operands = [expression("GM.plain(A)", value, A=self.value(value)) for value in values]
                return ast.copy_location(ast.BoolOp(op, [*operands, self.value(last)]), node)
            case ast.IfExp(test, body, orelse):
                decided = expression("GM.plain(A)", test, A=self.test(test))
                return ast.copy_location(ast.IfExp(decided, self.value(body), self.value(orelse)), node)
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [right]):
                searched = expression("GM.inert(B)" if self.has_assigned_shared() else "B", node, B=self.value(right))
                found = expression("GM.plain(A) in GM.plain(B)", node, A=self.value(left), B=searched)
                return found if isinstance(op, ast.In) else expression("not A", node, A=found)
            case ast.Compare(left, ops, others) if any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
                if not any(isinstance(operand, ast.Constant) for operand in (left, *others)):
                    raise Declined(LOOKED_AT, "a side compares by identity")
        return self._parts(node)

    def _closed(self, node: ast.expr) -> ast.expr:
        """A function without a name, as it was written; or a comprehension, but for the numbers that it reads."""
        names = NamesIn.code(node)
        held = self.slots | self.stored.keys()
        is_held = any(isinstance(part, ast.expr) and ast.unparse(part) in held for part in walk(node))
        does_more = any(isinstance(part, _SUSPENDING) for part in ast.walk(node))
        if self.has_assigned_shared() or is_held or does_more or not names.read.isdisjoint(_NEVER):
            raise Declined(NOT_SPECULABLE, f"`{_text(node)}` may only be evaluated if its side is taken")
        for spelling in sorted(free_names(node)):
            self.value(name(spelling, node))
        return node if isinstance(node, ast.Lambda) else replaced(node, self._read_within)

    def _read_within(self, node: ast.AST) -> ast.AST | None:
        """The numbers that a comprehension reads, as in a side."""
        if isinstance(node, ast.Lambda):  # nobody knows when it is called
            return node
        return self._read(node, lambda part: replaced(part, self._read_within)) if isinstance(node, ast.Call) else None

    def _read(self, node: ast.Call, lowered: Callable[[ast.expr], ast.expr]) -> ast.expr | None:
        """``x.item()``, ``x.tolist()`` or ``float(x)``, of what is lowered so; None for another call."""
        for method, form in _READS.items():
            if (owner := item_of(node, method)) is not None:
                return expression(form, node, A=lowered(owner))
        if self._is_reading(node):
            return expression("GM.read_in_side_by(F, A)", node, F=node.func, A=lowered(node.args[0]))
        return None

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._locals:
            known = self.bound | self.assigned | self.perhaps
            if node.id in self.uncertain and node.id not in known:
                return node
            if node.id in self._own and node.id not in known:
                raise Declined(MAY_BE_UNBOUND, f"`{node.id}` may be unbound where it would be read; assign it before")
            if node.id not in self.assigned:
                self.reads.add(node.id)
                if node.id in self._outside:  # as an attribute that is stored
                    return expression("GM.as_late(A)", node, A=node)
        elif node.id in self.lowering.kept and node.id not in self._kept:  # by the test, outside
            self.reads.add(node.id)
        return node

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        spelling = self.stored.get(ast.unparse(node)) if self.stored else None
        if spelling is not None:
            return self._stored(spelling, node)
        if self._scope.imports.qualified(node).startswith(TORCH):
            return self._of_module(node)
        if node.attr in self._outside & self.assigned:
            raise Declined(NOT_SPECULABLE, f"`{_text(node)}` may be the name that the side has bound")
        is_current = self.slots and ast.unparse(node) in self.slots
        if not is_current and not self.has_assigned_shared():
            return ast.copy_location(ast.Attribute(self.value(node.value), node.attr, ast.Load()), node)
        call = "GM.current(A, NAME)" if is_current else "GM.unrelated(A, NAME)"
        attribute = self.lowering.place.function.attribute(node.attr)
        return expression(call, node, A=self.value(node.value), NAME=constant(attribute, node))

    def _stored(self, spelling: str, at: ast.expr) -> ast.expr:
        """The local that stands for what is assigned to."""
        if spelling not in self.assigned:
            self.reads.add(spelling)
        return name(spelling, at)

    def has_assigned_shared(self) -> bool:
        """Has a name been assigned to that other functions have?"""
        shared = self.lowering.place.function.flow.captured
        return self._is_shared_before or not self.assigned.isdisjoint(shared)

    def _of_module(self, node: ast.expr) -> ast.expr:
        """A name of a module as it stands; the module may be a local name."""
        self.value(root_of(node))
        return node

    def _call(self, node: ast.Call) -> ast.expr:
        if (read := self._read(node, self.value)) is not None:
            return read
        qualified = self._scope.imports.qualified(node.func)
        bare = qualified.rpartition(".")[2] or getattr(node.func, "attr", "")
        if (question := self._shaped_by_data(node)) is not None:
            return self._answered(question, node, self.value)
        in_torch = qualified.startswith(TORCH)
        is_builtin = self._scope.names_one_of(
            node.func, _PLAIN_BUILTINS | _VALUE_BUILTINS, self.lowering.place.function
        )
        is_builtin = (is_builtin or qualified in _PLAIN_TORCH) and not unpacks(node)
        is_known = bare in tensor_ops.SPECULABLE and _has_known_form(node, bare, in_torch)
        if bare in _NEVER or (self.has_assigned_shared() and not (is_builtin or is_known)):
            called = ast.unparse(node.func)
            raise Declined(NOT_SPECULABLE, f"the call of `{called}` may only be made if its side is taken")
        form = "GM.plain(A)" if is_builtin and qualified in _VALUE_BUILTINS else "A"
        if self.has_assigned_shared():
            form = form.replace("A", "GM.inert(A)")
        arguments = [self._argument(argument, form) for argument in node.args]
        keywords = [
            ast.copy_location(ast.keyword(keyword.arg, self._argument(keyword.value, form)), keyword)
            for keyword in node.keywords
        ]
        function = self._of_module(node.func) if in_torch else self._function(node.func)
        match function:
            case ast.Attribute(owner, "to") if not in_torch:
                function, arguments = expression("GM.moved", node), [owner, *arguments]
        return ast.copy_location(ast.Call(function, arguments, keywords), node)

    def _shaped_by_data(self, node: ast.Call) -> Question | None:
        """What is asked of a call of which the data decides the shape of the result, ``mask.nonzero()``."""
        return shaped_by_data(node, *called(node, self._scope, self.lowering.place.function))

    def _answered(self, question: Question, node: ast.expr, lowered: Callable[[ast.expr], ast.expr]) -> ast.expr:
        """The answer, or where there is none the expression, over what its operands were."""
        names = [f"{OWN}asked{self._asked + place}" for place in range(len(question.operands) + 1)]
        self._asked += len(names)
        given = [
            expression("(T := A)", node, T=spelling, A=lowered(operand))
            for spelling, operand in zip(names[1:], question.operands, strict=True)
        ]
        original = question.original(node, [name(spelling, node) for spelling in names[1:]])
        return expression(
            "T if (T := A) is not None else B", node, T=names[0], A=question.asked(given, node), B=original
        )

    def _function(self, func: ast.expr) -> ast.expr:
        """What is called: where a name was assigned to that other functions have, a method that none of them is."""
        if isinstance(func, ast.Attribute) and self.has_assigned_shared():
            owner = expression("GM.inert(A)", func, A=self.value(func.value))
            return ast.copy_location(ast.Attribute(owner, func.attr, ast.Load()), func)
        return self.value(func)

    def _is_reading(self, node: ast.Call) -> bool:
        """Is it ``float(x)``, or another that would read the number of a tensor?"""
        is_plain = len(node.args) == 1 and not node.keywords and not unpacks(node)
        return is_plain and self._scope.names_one_of(node.func, _READING, self.lowering.place.function)

    def _argument(self, node: ast.expr, form: str) -> ast.expr:
        if isinstance(node, ast.Starred):
            return ast.copy_location(ast.Starred(self.value(node.value), ast.Load()), node)
        return expression(form, node, A=self.value(node))


def _has_known_form(node: ast.Call, bare: str, in_torch: bool) -> bool:
    """Is it not one of the forms that do something else?"""
    if any(keyword.arg in ("out", "inplace", "alpha") for keyword in node.keywords):
        return False
    given = len(node.args) + len(node.keywords)
    if bare == "where":
        return given == (3 if in_torch else 2)
    return not (bare in tensor_ops.INPLACE and in_torch and len(node.args) > 1)


def may_be_of_data(index: ast.expr) -> bool:
    """May it be a whole number that the data decides, or a mask?"""
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.Invert)
    return not isinstance(index, (ast.Constant, ast.Slice, ast.Tuple))


def _grows_little(node: ast.BinOp) -> bool:
    """Is a number spelled out by which nothing grows much?"""
    numbers = [node.left, node.right] if isinstance(node.op, ast.Mult) else [node.right]
    values = [number.value for number in numbers if isinstance(number, ast.Constant)]
    return any(type(value) is float or value in range(-_MOST, _MOST) for value in values)


def _mapped(field: object, part: Callable[[ast.AST], ast.AST | None]) -> object:
    """A field of a node, with what `part` gives for the expressions in it."""
    if isinstance(field, list):
        return [_mapped(item, part) for item in field]
    found = part(field) if isinstance(field, ast.AST) else None
    return field if found is None else found


def _text(node: ast.expr) -> str:
    return textwrap.shorten(ast.unparse(node), 60, placeholder=" ...")
