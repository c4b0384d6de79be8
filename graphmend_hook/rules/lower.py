"""Expressions of a data-dependent statement in a form that traced code may evaluate.

A *test* keeps Python's short-circuit where an operand turns out not to be a tensor, and combines the operands where it
does.  A *speculative* expression may be evaluated though its side is not taken: every operation goes through a function
of the runtime that first asks whether it can fail, on the values that are traced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cached_property

from ..analysis.names import walk
from ..analysis.scopes import ModuleScope, Place
from ..analysis.taint import Taint
from ..templates import OWN, argument, constant, expression, name
from . import tensor_ops
from .declined import Declined
from .numbers import carried_names
from .surroundings import evidence

ARITHMETIC = {
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
_COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
# Without effect and without failure on anything that is not tensor data.
_PLAIN_BUILTINS = frozenset({"isinstance", "len", "tuple", "type", "hasattr", "getattr", "callable"})
_VALUE_BUILTINS = frozenset({"abs", "bool", "float", "int", "max", "min", "range", "str"})
_PLAIN_TORCH = frozenset({"torch.finfo", "torch.iinfo", "torch.Size", "torch.device", "torch.is_tensor"})
_TORCH = ("torch.", "torch.nn.functional.")
_MOST_OPERANDS = 4  # each may be evaluated early or in its turn, which is code for both


Slot = ast.Attribute | ast.Subscript  # what a side may assign to, beside names


class Lowering:
    """Lowers the expressions of one statement."""

    def __init__(self, place: Place, scope: ModuleScope) -> None:
        self.place = place
        self.scope = scope
        self._evidence = evidence(place.function, scope)
        self._fresh = 0
        self._operands = 0

    @cached_property
    def carried(self) -> frozenset[str]:
        """The names of numbers that the function reads from tensors, once each."""
        return carried_names(self.place.function)

    def taint(self, node: ast.expr) -> Taint:
        return self._evidence.of(node)

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
            if side is not None:
                left = expression("GM.plain(A)", first, A=left)
            return ast.copy_location(ast.BoolOp(node.op, [left, right]), node)
        if side is not None:
            return self._combined(node.op, first, left, right)
        early = Side(self)
        speculated = self._short_circuit(node, rest, early)
        return self._early(node.op, first, (left, right), early, speculated)

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
        arguments = expression("()", at)
        assert isinstance(arguments, ast.Tuple)
        arguments.elts = [name(parameter, at) for parameter in parameters]
        whole = expression(
            "R if GM.undecided(S) and (K := GM.early(JOIN, T, lambda: B, ARGUMENTS)) is not None else PLAIN",
            at,
            R=result,
            S=ast.copy_location(ast.NamedExpr(stored, operands[0]), at),
            K=kept,
            JOIN=expression("GM.either" if isinstance(operator, ast.Or) else "GM.both", at),
            T=loaded,
            B=speculated,
            ARGUMENTS=arguments,
            PLAIN=ast.copy_location(ast.BoolOp(operator, [loaded, operands[1]]), at),
        )
        call = next(part for part in walk(whole) if isinstance(part, ast.Lambda) and part.body is speculated)
        call.args.args = [argument(parameter, at) for parameter in parameters]
        return whole

    def _comparison(self, node: ast.Compare, side: Side | None) -> ast.expr:
        operations = [_COMPARISONS.get(type(op)) for op in node.ops]
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
        return side.operated(_COMPARISONS[type(op)], left, right)

    def _operand(self, node: ast.expr, side: Side | None) -> ast.expr | None:
        """An operand that Python would read out of a tensor, as a tensor of the same value; None for any other."""
        if isinstance(node, ast.Name) and node.id in self.carried:
            return expression("GM.number_of(A)", node, A=self._value(node, side))
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

    def _test_call(self, node: ast.Call, side: Side | None) -> ast.expr:
        qualified = self.scope.imports.qualified(node.func)
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return self._value(node, side)
        if qualified == "bool" and len(node.args) == 1 and not node.keywords:
            return self.test(node.args[0], side)
        if qualified in ("torch.equal", "torch.allclose") and len(node.args) >= 2:
            return self._comparing(node, f"GM.{qualified.partition('.')[2]}", node.args, side)
        if isinstance(node.func, ast.Attribute) and not qualified.startswith("torch."):
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


class Side:
    """Speculative expressions of one side of a branch, and what the side has bound so far.

    bound: the local names that are certainly bound before the side; assigned: those that it has bound since.
    reads: the names that it reads of the function around it.
    stored: the attributes that it assigns to, and the locals that stand for them.
    ended: control does not reach the end of the side.
    """

    def __init__(self, lowering: Lowering) -> None:
        self.lowering, self._scope, place = lowering, lowering.scope, lowering.place
        names = [function.names.bound | function.names.defined for function in place.function.lineage()]
        self._own, self._locals = names[0], frozenset().union(*names)
        self.bound = frozenset(place.function.flow.bound_before(place.statement))
        self.assigned: set[str] = set()
        self.reads: set[str] = set()
        self.stored: dict[str, str] = {}
        self._inherited: frozenset[str] = frozenset()
        self.ended = False

    def inner(self) -> Side:
        """A side of a branch inside this one."""
        side = Side(self.lowering)
        side.bound = self.bound | self.assigned
        side.stored = dict(self.stored)
        side._inherited = frozenset(self.stored.values())
        return side

    def copy(self) -> Side:
        """The same side, where control may not pass."""
        side = self.inner()
        side.bound, side.assigned, side._inherited = self.bound, set(self.assigned), self._inherited
        return side

    def is_local(self, spelling: str) -> bool:
        """Is it a local name, of the function or of one around it?"""
        return spelling in self._locals

    def owner(self, slot: Slot) -> ast.expr:
        """The object whose attribute or item `slot` is."""
        return self.value(slot.value)

    def store(self, text: str, spelling: str) -> None:
        """From here on the attribute written as `text` is the local called `spelling`."""
        self.stored[text] = spelling
        self._inherited -= {spelling}

    def test(self, node: ast.expr) -> ast.expr:
        return self.lowering.test(node, self)

    def value(self, node: ast.expr) -> ast.expr:
        """`node` for speculative evaluation; raises Declined."""
        lower = getattr(self, f"_lower_{type(node).__name__}", None)
        if lower is None:
            raise Declined("R02", f"a {_described(node)} may only be evaluated if its side is taken")
        lowered: ast.expr = lower(node)
        return lowered

    def _lower_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def _lower_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._locals:
            if node.id in self._own and node.id not in self.bound and node.id not in self.assigned:
                raise Declined("R03", f"`{node.id}` may be unbound where it would be read; assign it before")
            if node.id not in self.assigned:
                self.reads.add(node.id)
        return node

    def _lower_Attribute(self, node: ast.Attribute) -> ast.expr:
        text = ast.unparse(node)
        if text in self.stored:
            return self._slot(text, node)
        if any(key.startswith(f"{text}[") for key in self.stored):
            raise Declined("R04", f"`{text}` is read where an item of it is written")
        if any(key.rpartition(".")[2] == node.attr for key in self.stored):
            raise Declined("R04", f"`.{node.attr}` is written through one name and read through another")
        if self._scope.imports.qualified(node).startswith("torch."):
            return self._of_module(node)
        related = any(ast.unparse(node.value) == re.split(r"[.\[]", key)[0] for key in self.stored)
        call = "GM.unrelated(A, NAME)" if related else "GM.attribute(A, NAME)"
        return expression(call, node, A=self.value(node.value), NAME=constant(node.attr, node))

    def _of_module(self, node: ast.expr) -> ast.expr:
        """A name of a module as it stands; the module may be a local name."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        self.value(root)
        return node

    def _slot(self, text: str, node: ast.expr) -> ast.expr:
        spelling = self.stored[text]
        if spelling in self._inherited:
            self.reads.add(spelling)
        return name(spelling, node)

    def _lower_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.copy_location(ast.Tuple([self.value(item) for item in node.elts], ast.Load()), node)

    def _lower_List(self, node: ast.List) -> ast.expr:
        return ast.copy_location(ast.List([self.value(item) for item in node.elts], ast.Load()), node)

    def _lower_Slice(self, node: ast.Slice) -> ast.expr:
        lower, upper, step = (
            self.value(part) if part else constant(None, node) for part in (node.lower, node.upper, node.step)
        )
        return expression("GM.slice(A, B, C)", node, A=lower, B=upper, C=step)

    def _lower_Subscript(self, node: ast.Subscript) -> ast.expr:
        text = ast.unparse(node)
        if text in self.stored:
            return self._slot(text, node)
        if any(key.endswith("]") for key in self.stored):
            raise Declined("R04", f"`{text}` is read where an item of a container is written")
        return expression("GM.item_of(A, I)", node, A=self.value(node.value), I=self.value(node.slice))

    def _lower_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self._operation(node, ARITHMETIC.get(type(node.op)), node.left, node.right)

    def _lower_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return expression("not GM.plain(A)", node, A=self.value(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return self._operation(node, ARITHMETIC.get(type(node.op)), node.operand)

    def _lower_Compare(self, node: ast.Compare) -> ast.expr:
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            if not any(isinstance(operand, ast.Constant) for operand in (node.left, *node.comparators)):
                raise Declined("R17", "a side compares by identity")
            operands = [self.value(operand) for operand in node.comparators]
            return ast.copy_location(ast.Compare(self.value(node.left), node.ops, operands), node)
        if len(node.ops) > 1:
            raise Declined("R02", "chained comparisons may only be evaluated if their side is taken")
        left, right = node.left, node.comparators[0]
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = expression("GM.plain(A) in GM.plain(B)", node, A=self.value(left), B=self.value(right))
            return found if isinstance(node.ops[0], ast.In) else expression("not A", node, A=found)
        return self._operation(node, _COMPARISONS.get(type(node.ops[0])), left, right)

    def _operation(self, node: ast.expr, operation: str | None, *operands: ast.expr) -> ast.expr:
        if operation is None:
            raise Declined("R02", f"a {_described(node)} may only be evaluated if its side is taken")
        return self.operated(operation, *(self.value(operand) for operand in operands))

    @staticmethod
    def operated(operation: str, *operands: ast.expr) -> ast.expr:
        """The operator of that name in the module `operator`, on operands that are lowered already."""
        at = operands[0]
        traits = constant(_traits(_TENSOR_OPERATION.get(operation, operation)), at)
        call = expression("GM.operate(NAME, TRAITS)", at, NAME=constant(operation, at), TRAITS=traits)
        assert isinstance(call, ast.Call)
        call.args += operands
        return call

    def _lower_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        operands = [expression("GM.plain(A)", value, A=self.value(value)) for value in node.values[:-1]]
        return ast.copy_location(ast.BoolOp(node.op, [*operands, self.value(node.values[-1])]), node)

    def _lower_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = expression("GM.plain(A)", node.test, A=self.test(node.test))
        return ast.copy_location(ast.IfExp(test, self.value(node.body), self.value(node.orelse)), node)

    def _lower_Call(self, node: ast.Call) -> ast.expr:
        qualified = self._scope.imports.qualified(node.func)
        bare = qualified.rpartition(".")[2] or getattr(node.func, "attr", "")
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(
            kw.arg in (None, "out", "inplace", "alpha") for kw in node.keywords
        ):
            raise Declined("R02", "a call with `*`, `**`, `out=`, `inplace=` or `alpha=` needs its side to be taken")
        if qualified in _PLAIN_TORCH:
            return self._call(node, ast.copy_location(ast.Call(self._of_module(node.func), [], []), node))
        if self.stored and qualified in ("getattr", "hasattr"):
            raise Declined("R04", f"`{qualified}` may read an attribute that the side writes")
        if qualified in _PLAIN_BUILTINS | _VALUE_BUILTINS and self._is_builtin(node.func, qualified):
            call = ast.copy_location(ast.Call(node.func, [], []), node)
            return self._call(node, call, plain=qualified in _VALUE_BUILTINS)
        in_torch = qualified.startswith(_TORCH)
        if bare in tensor_ops.SPECULABLE and _has_known_form(node, bare, in_torch):
            if in_torch:
                function = self._of_module(node.func)
                return self._call(node, self._attempt("GM.attempt(NAME, TRAITS)", node, bare, function))
            if isinstance(node.func, ast.Attribute) and not qualified.startswith("torch."):
                receiver = self.value(node.func.value)
                return self._call(node, self._attempt("GM.attempt_method(NAME, TRAITS)", node, bare, receiver))
        raise Declined("R02", f"the call of `{ast.unparse(node.func)}` may only be made if its side is taken")

    def _is_builtin(self, func: ast.expr, qualified: str) -> bool:
        return self._scope.names_one_of(func, {qualified}, self.lowering.place.function)

    @staticmethod
    def _attempt(source: str, node: ast.Call, bare: str, first: ast.expr) -> ast.Call:
        call = expression(source, node, NAME=constant(bare, node), TRAITS=constant(_traits(bare), node))
        assert isinstance(call, ast.Call)
        call.args.append(first)
        return call

    def _call(self, node: ast.Call, call: ast.Call, plain: bool = False) -> ast.Call:
        def lowered(argument: ast.expr) -> ast.expr:
            value = self.value(argument)
            return expression("GM.plain(A)", argument, A=value) if plain else value

        call.args += [lowered(argument) for argument in node.args]
        call.keywords += [
            ast.copy_location(ast.keyword(keyword.arg, lowered(keyword.value)), keyword) for keyword in node.keywords
        ]
        return call


def _has_known_form(node: ast.Call, bare: str, in_torch: bool) -> bool:
    """Is it not one of the forms that do something else?"""
    given = len(node.args) + len(node.keywords)
    if bare == "where":
        return given == (3 if in_torch else 2)
    return not (bare in tensor_ops.INPLACE and in_torch and len(node.args) > 1)


def _traits(operation: str) -> str:
    """What the runtime checks of the operands of an operation: how many may be tensors, and words for the rest."""
    words = [str(tensor_ops.OPERANDS.get(operation, 2 if operation in _BINARY else 1))]
    words += [word for word, operations in _TRAITS.items() if operation in operations]
    return " ".join(words)


_TRAITS = {
    "smooth": tensor_ops.SMOOTH,
    "floating": tensor_ops.FLOATING_ONLY,
    "numeric": tensor_ops.NO_BOOLEANS,
    "integral": tensor_ops.INTEGERS_ONLY,
    "filled": tensor_ops.NOT_EMPTY,
    "fitting": tensor_ops.FITTING,
}
# Operators by the operation that they are on tensors.
_TENSOR_OPERATION = {
    "truediv": "true_divide",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "bitwise_not",
    "pos": "positive",
}
_BINARY = frozenset({"floordiv", "mod"})


def _described(node: ast.expr) -> str:
    return type(node).__name__.lower()
