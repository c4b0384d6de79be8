"""Tests of data-dependent statements in a form that traced code may evaluate.

A test keeps Python's short-circuit where an operand turns out not to be a tensor, and combines the operands where it
does.  Inside a side, and in an operand that Python might not reach, its expressions are those of `speculated`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Sequence
from typing import TypeVar

from ...diagnostics import Refusal
from ...source.draws import is_draw
from ...source.names import NamesIn, item_of, root_name, walk
from ...source.scopes import ModuleScope, Place
from ...source.taint import Taint, evidence_of
from ...source.templates import OWN, constant, expression, name, replaced
from ...source.tensor_ops import REDUCTIONS_TO_PYTHON
from ...source.unknown import OF_NUMBERS, is_membership
from ..base import Declined, unsuitable
from .codes import CHAINED, NOT_SPECULABLE, TOO_BIG
from .speculated import COMPARISONS, Speculation

Found = TypeVar("Found")
MOST_STATEMENTS = 60
# ``a and b``, ``a or b`` for the sake of their truth, with that of `a` asked for once, and not again of the result.
_ONCE = {ast.And: "B if A else False", ast.Or: "True if A else B"}
# The same for the sake of their value, and where data decides which one that is.
_ONE_OF = {ast.And: "B if TEST else T", ast.Or: "T if TEST else B"}
_JOINS = {ast.And: "GM.one_and_other", ast.Or: "GM.one_or_other"}
_MOST_OPERANDS = 4  # each may be evaluated early or in its turn, which is code for both


class Lowering:
    """Lowers the expressions of one statement.

    kept: the names that hold what stands in the middle of chained comparisons.
    is_open: does nothing speak for the tests being of tensors, nor against it?
    """

    def __init__(self, place: Place, scope: ModuleScope) -> None:
        self.place = place
        self.scope = scope
        self.kept: set[str] = set()
        self._evidence = evidence_of(place.function, scope)
        self._fresh = 0
        self._operands = 0
        self._statements = 0
        self.is_open = _are_open(tests_of(place.statement), place, scope)

    def count_statement(self) -> None:
        """Take note of a statement of a side; raises Declined where there are too many."""
        self._statements += 1
        if self._statements > MOST_STATEMENTS:
            raise Declined(TOO_BIG, f"the sides have more than {MOST_STATEMENTS} statements")

    def taint(self, node: ast.expr) -> Taint:
        return self._evidence.of_test(node)

    def test(self, node: ast.expr, side: Speculation | None = None) -> ast.expr:
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

    def _value(self, node: ast.expr, side: Speculation | None) -> ast.expr:
        return replaced(node, self._read) if side is None else side.value(node)

    def _read(self, node: ast.AST) -> ast.expr | None:
        """A number that is read in the middle of an expression, or drawn; None for anything else."""
        owner = item_of(node) if isinstance(node, ast.Call) else None
        if owner is None and isinstance(node, ast.Call) and (read := self._called_number(node)) is not None:
            called, given = read
            return expression(f'{called}(GM.known(A, "{called}"))', node, A=replaced(given, self._read))
        if owner is None:
            return self._drawn(node)
        holes: dict[str, ast.expr | str] = {"A": f"{OWN}asked", "VALUE": replaced(owner, self._read)}
        return expression("GM.answered(lambda A: GM.item(A), lambda A: A.item(), VALUE)", owner, **holes)

    def _drawn(self, node: ast.AST) -> ast.expr | None:
        """A draw of Python's `random` or numpy's, as a number of the graph; None for anything else."""
        if not isinstance(node, ast.Call) or self.scope.is_local(node.func, self.place.function):
            return None
        if not is_draw(node, self.scope.imports.qualified(node.func)):
            return None
        return ast.copy_location(ast.Call(expression("GM.drawn", node), [node.func, *node.args], []), node)

    def _temporary(self) -> str:
        self._fresh += 1
        return f"{OWN}{self._fresh}"

    def _short_circuit(self, node: ast.BoolOp, operands: Sequence[ast.expr], side: Speculation | None) -> ast.expr:
        first, rest = operands[0], operands[1:]
        left = self.test(first, side)
        if not rest:
            return left
        right = self._short_circuit(node, rest, side)
        if self.taint(first) is not Taint.NO:
            return self._early(node, first, rest, (left, right)) if side is None else self._combined(node, left, right)
        if side is None and self._compares_handed_in(first):
            with contextlib.suppress(Declined):  # nothing speaks for a tensor but that it might be one
                return self._early(node, first, rest, (left, right))
        if side is not None:
            left = expression("GM.plain(A)", first, A=left)
        return expression(_ONCE[type(node.op)], node, A=left, B=right)

    def _compares_handed_in(self, node: ast.expr) -> bool:
        """Does it compare an item of a parameter that nobody says the type of?"""
        items = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        return any(isinstance(item, ast.Subscript) and root_name(item) in self._evidence.untyped for item in items)

    def _combined(self, node: ast.BoolOp, left: ast.expr, right: ast.expr) -> ast.expr:
        """Inside a side: both operands, of which the right one may be evaluated in any case, if it only computes."""
        text = "GM.both(T, GM.operand(GM.begin_operand(T), B)) if GM.undecided(T := A) or T else T"
        if isinstance(node.op, ast.Or):
            text = "GM.either(T, GM.operand(GM.begin_operand(T), B)) if GM.undecided(T := A) or not T else T"
        return expression(text, left, T=self._temporary(), A=left, B=right)

    def _early(
        self, node: ast.BoolOp, first: ast.expr, rest: Sequence[ast.expr], operands: tuple[ast.expr, ast.expr]
    ) -> ast.expr:
        """Outside of sides: if the right operand cannot be evaluated early, Python looks at the left one first."""
        early = Speculation(self)
        speculated = early.judged(node, self._short_circuit(node, rest, early))
        self._operands += 1
        if self._operands > _MOST_OPERANDS:
            raise Declined(TOO_BIG, f"the test joins more than {_MOST_OPERANDS} tensors with `and` and `or`")
        join, temporary = "GM.either" if isinstance(node.op, ast.Or) else "GM.both", self._temporary()
        settled = expression("GM.in_turn(T)", first, T=temporary)
        return expression(
            f"R if GM.undecided(T := A) and (R := GM.early({join}, T, lambda READ: LATER, (READ,))) is not None"
            " else IN_TURN",
            first,
            T=temporary,
            IN_TURN=expression(_ONCE[type(node.op)], node, A=settled, B=operands[1]),
            R=self._temporary(),
            A=operands[0],
            LATER=speculated,
            READ=sorted(early.reads),
        )

    def truth_of(self, node: ast.expr) -> ast.expr:
        """A test that `gives_bool`, as the bool that it gives."""
        return expression('bool(GM.known(A, "bool"))', node, A=self.test(node))

    def joined(self, node: ast.BoolOp) -> ast.expr:
        """``a and b``, ``a or b`` for the sake of the value, which is that of one of them."""
        return self._joined(node, node.values)

    def _joined(self, node: ast.BoolOp, operands: Sequence[ast.expr]) -> ast.expr:
        first, rest = operands[0], operands[1:]
        if not rest:
            return self.truth_of(first) if self._is_truth_of_data(first) else self._operand_joined(first, None)
        holes: dict[str, ast.expr | str] = {"T": self._temporary(), "A": self._operand_joined(first, None)}
        holes["B"] = self._joined(node, rest)
        if self.taint(first) is Taint.NO:
            return expression(_ONE_OF[type(node.op)].replace("TEST", "(T := A)"), node, **holes)
        early = Speculation(self)
        later = early.judged(node, self._joined_early(node, rest, early))
        return expression(
            f"R if GM.undecided(T := A) and (R := GM.early({_JOINS[type(node.op)]}, T, lambda READ: LATER, (READ,)))"
            f" is not None else {_ONE_OF[type(node.op)].replace('TEST', 'GM.in_turn(T)')}",
            node,
            R=self._temporary(),
            LATER=later,
            READ=sorted(early.reads),
            **holes,
        )

    def _joined_early(self, node: ast.BoolOp, operands: Sequence[ast.expr], early: Speculation) -> ast.expr:
        """The operands from the second on, all of which are evaluated."""
        made = [self._operand_joined(each, early) for each in operands]
        join = f"{_JOINS[type(node.op)]}(A, B)"
        return functools.reduce(lambda one, other: expression(join, node, A=one, B=other), made)

    def _is_truth_of_data(self, node: ast.expr) -> bool:
        """Is it a bool of Python's that only the graph knows?"""
        return self.taint(node) is not Taint.NO and self.gives_bool(node)

    def _operand_joined(self, node: ast.expr, side: Speculation | None) -> ast.expr:
        """The value of an operand; raises Declined where it is a bool of Python's that only the graph knows."""
        if self._is_truth_of_data(node):
            raise Declined(NOT_SPECULABLE, "a truth that only the graph knows is joined with what may be a tensor")
        if isinstance(node, ast.BoolOp):
            return self.joined(node) if side is None else self._joined_early(node, node.values, side)
        return self._value(node, side)

    def _comparison(self, node: ast.Compare, side: Speculation | None) -> ast.expr:
        if len(node.ops) > 1:
            return self._value(node, side) if self.taint(node) is Taint.NO else self._chain(node, side)
        if is_membership(node):
            return self._membership(node, side)
        operation = COMPARISONS.get(type(node.ops[0]))
        left, right = (self._operand(operand, side) for operand in (node.left, node.comparators[0]))
        if operation is None or (left is None and right is None):
            return self._value(node, side)
        return expression(
            "GM.compare(NAME, A, B, NUMBERS)",
            node,
            NAME=constant(operation, node),
            A=left or self._value(node.left, side),
            B=right or self._value(node.comparators[0], side),
            NUMBERS=constant((left is not None, right is not None), node),
        )

    def _chain(self, node: ast.Compare, side: Speculation | None) -> ast.expr:
        """``a < b < c`` as ``a < (t := b) and t < c``."""
        pairs: list[ast.expr] = []
        left: ast.expr = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            kept: ast.expr = right
            if right is not node.comparators[-1] and not isinstance(right, (ast.Constant, ast.Name)):
                if self._operand(right, None) is not None:
                    raise Declined(CHAINED, "the test chains comparisons, and reads a number in the middle; use `and`")
                temporary = self._temporary()
                self.kept.add(temporary)
                kept, right = expression("(T := A)", right, T=temporary, A=right), name(temporary, right)  # noqa: PLW2901
            pairs.append(ast.copy_location(ast.Compare(left, [op], [kept]), left))
            left = right
        return self.test(ast.copy_location(ast.BoolOp(ast.And(), pairs), node), side)

    def _membership(self, node: ast.Compare, side: Speculation | None) -> ast.expr:
        """``token in ids``."""
        if self.taint(node) is Taint.NO or (side is not None and side.has_assigned_shared()):
            return self._value(node, side)
        element, container = (self._value(operand, side) for operand in (node.left, node.comparators[0]))
        found = expression(f"GM.contains(A, B{_in_side(side)})", node, A=element, B=container)
        return found if isinstance(node.ops[0], ast.In) else expression("GM.negate(A)", node, A=found)

    def _operand(self, node: ast.expr, side: Speculation | None) -> ast.expr | None:
        """An operand that Python would read out of a tensor, as a tensor of the same value; None for any other."""
        if (owner := item_of(node)) is not None:
            return expression("GM.number(A)", node, A=self._value(owner, side))
        if (read := self._called_number(node)) is not None:
            return expression(f"GM.number(A, {read[0]})", node, A=self._value(read[1], side))
        if isinstance(node, ast.Call) and not node.args and not node.keywords and (selection := self._counted(node)):
            source, mask = self._value(selection.value, side), self._value(selection.slice, side)
            return expression("GM.count_selected(A, B)", node, A=source, B=mask)
        return None

    def _called_number(self, node: ast.expr) -> tuple[str, ast.expr] | None:
        """What stands in ``float(x)`` or ``int(x)``, where `x` may be a tensor; None for anything else."""
        match node:
            case ast.Call(func=ast.Name("float" | "int" as called) as function, args=[given], keywords=[]):
                may_be_tensor = not (isinstance(given, ast.Starred) or self._is_number(given))
                is_builtin = self.scope.names_one_of(function, (called,), self.place.function)
                return (called, given) if may_be_tensor and is_builtin else None
        return None

    def gives_bool(self, test: ast.expr) -> bool:
        """Does `test` give Python a bool, where tensors take part, and no tensor?  For `.item()` its dtype decides."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.BoolOp(values=operands):
                return all(map(self.gives_bool, operands)) and not any(map(item_of, operands))
            case ast.Compare(left=left, comparators=others):
                return all(self._operand(each, None) or self._is_number(each) for each in (left, *others))
            case ast.Call():
                return self._test_call(test, None) is not test
        return False

    def _is_number(self, node: ast.expr) -> bool:
        """Is it a number of Python's for certain: ``2``, ``len(x)``, ``x.shape[0]``, ``x.numel()``?"""
        match node:
            case ast.Constant() | ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
            case ast.Call(func=ast.Attribute(attr="size" | "dim" | "numel")):
                return True
            case ast.Call(func=ast.Name() as function):
                return self.scope.names_one_of(function, ("len",), self.place.function)
        return False

    def counts_selection(self, test: ast.expr) -> bool:
        """Does it compare ``x[mask].numel()``?"""
        return isinstance(test, ast.Compare) and any(map(self._counted, walk(test)))

    def _counted(self, node: ast.AST) -> ast.Subscript | None:
        """The selection in ``x[mask].numel()``."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Subscript() as selection, attr="numel")) if self.taint(node):
                return selection
        return None

    def _test_call(self, node: ast.Call, side: Speculation | None) -> ast.expr:
        qualified = self.scope.imports.qualified(node.func)
        plain = not node.keywords and not any(isinstance(argument, ast.Starred) for argument in node.args)
        function = self.place.function
        if plain and len(node.args) == 1 and self.scope.names_one_of(node.func, ("bool",), function):
            return self.test(node.args[0], side)
        if plain and len(node.args) == 1 and self.scope.names_one_of(node.func, ("all", "any"), function):
            return self._truths(node, side)
        if plain and len(node.args) == 2 and self.scope.names_one_of(node.func, ("torch.equal",), function):
            left, right = (self._value(operand, side) for operand in node.args)
            return expression("GM.equal(A, B)", node, A=left, B=right)
        if side is None and self._is_close(node):
            return ast.copy_location(ast.Call(expression("GM.close", node), node.args, node.keywords), node)
        if (owner := item_of(node)) is not None:
            return expression("GM.one_value(A)", node, A=self._value(owner, side))
        if plain and len(node.args) == 1 and self.scope.names_one_of(node.func, OF_NUMBERS, function):
            return self._of_number(node, qualified, side)
        called = qualified.rpartition(".")[2] or getattr(node.func, "attr", "")
        if called in REDUCTIONS_TO_PYTHON and self.taint(node) is not Taint.NO:
            raise Declined(NOT_SPECULABLE, f"`{called}` of a tensor gives Python what only the graph knows")
        return self._value(node, side)

    def _of_number(self, node: ast.Call, function: str, side: Speculation | None) -> ast.expr:
        """``math.isfinite(loss.item())``, of a number or of a tensor that holds one."""
        (given,) = node.args
        read = item_of(given)
        value = self._value(given if read is None else read, side)
        name, is_read = constant(function.rpartition(".")[2], node), constant(read is not None, node)
        return expression("GM.of_number(NAME, A, READ)", node, NAME=name, A=value, READ=is_read)

    def _is_close(self, node: ast.Call) -> bool:
        """Is it a call of `torch.allclose` as its signature has it, the tensors by position?"""
        named = [keyword.arg for keyword in node.keywords]
        by_name = ("rtol", "atol", "equal_nan")[max(len(node.args) - 2, 0) :]
        plain = 2 <= len(node.args) <= 5 and not any(isinstance(argument, ast.Starred) for argument in node.args)
        is_right = plain and {*named} <= {*by_name} and len({*named}) == len(named)
        return is_right and self.scope.names_one_of(node.func, ("torch.allclose",), self.place.function)

    def _truths(self, node: ast.Call, side: Speculation | None) -> ast.expr:
        """``any(x > 0)``, which asks one element after the other."""
        if self.taint(node) is Taint.NO or (side is not None and side.has_assigned_shared()):
            return self._value(node, side)
        assert isinstance(node.func, ast.Name)
        if isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)) and side is None:
            return self._truths_early(node, node.args[0], node.func.id)
        items = self._value(node.args[0], side)
        return expression(f"GM.truths(NAME, A{_in_side(side)})", node, NAME=constant(node.func.id, node), A=items)

    def _truths_early(self, node: ast.Call, items: ast.GeneratorExp | ast.ListComp, function: str) -> ast.expr:
        """``any(p.isnan().any() for p in parameters)``: all of them are made, if the trace finds no harm in that."""
        early = Speculation(self)
        listed = ast.copy_location(ast.ListComp(self._element(items), items.generators), items)
        return expression(
            "R if (R := GM.early(GM.truths_of, NAME, lambda READ: LATER, (READ,))) is not None else ORIGINAL",
            node,
            R=self._temporary(),
            NAME=constant(function, node),
            LATER=early.judged(items, early.value(listed)),
            READ=sorted(early.reads),
            ORIGINAL=node,
        )

    def _element(self, items: ast.GeneratorExp | ast.ListComp) -> ast.expr:
        """What is asked of each item, in which numbers are read as a test does."""
        within = Speculation(self)
        within.perhaps |= NamesIn.code(*(each.target for each in items.generators)).bound
        try:
            return self.test(items.elt, within)
        except Declined:
            return items.elt


def _in_side(side: Speculation | None) -> str:
    """What tells the runtime that it is called for a side."""
    return ", True" if side is not None else ""


def tests_of(statement: ast.stmt) -> list[ast.expr]:
    """The test of an `if`, a `while` or an `assert`."""
    return [statement.test] if isinstance(statement, (ast.If, ast.While, ast.Assert)) else []


def heard(found: Found, tests: Sequence[ast.expr], place: Place, scope: ModuleScope) -> Found | None:
    """What a rule has found; None for a refusal where nothing speaks for a tensor: that is nobody's business."""
    return None if isinstance(found, Refusal) and _are_open(tests, place, scope) else found


def _are_open(tests: Sequence[ast.expr], place: Place, scope: ModuleScope) -> bool:
    """Does nothing speak for the tests being of tensors, nor against it?"""
    evidence = evidence_of(place.function, scope)
    return bool(tests) and all(evidence.of_test(test) is Taint.OPEN for test in tests)


def of_data(test: ast.expr, place: Place, scope: ModuleScope, code: str) -> Lowering | Refusal | None:
    """What lowers a test of the statement at `place`; None where nothing speaks for its being tensor data.

    The refusal, under the rule's `code`, where nothing in the function can be rewritten.
    """
    if evidence_of(place.function, scope).of_test(test) is Taint.NO:
        return None
    return unsuitable(place, scope, code) or Lowering(place, scope)
