"""Where [Value] asks: the expressions of a statement that read a number out of what may be a tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...source.draws import is_draw
from ...source.names import enclosed_in, walk
from ...source.scopes import ModuleScope, Place
from ...source.taint import Taint, evidence_of, is_comparison
from ...source.templates import OWN, name
from ...source.unknown import STRANGERS, is_held_by_self, is_membership
from . import forms, groups, sizes
from .forms import Question
from .number_uses import is_number_alone

_NUMBERS = frozenset({"bool", "float", "int", "range"})
_LATE, _WHOLE = frozenset({"bool", "float"}), frozenset({"int"})
_COUNTING = frozenset({"enumerate"})
_LISTS = frozenset({"list", "tuple"})
_TRUTHS = frozenset({"all", "any"})  # of Python: they look at one item after the other
_TARGET = f"{OWN}target"
_WRITTEN = f"({_TARGET} := GM.written_to(A, B, C))[0][{_TARGET}[1]]"  # what is written to, and where in it
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Questions:
    """The questions of a statement, by the identity of the expression that each stands for.

    found: those questions.
    enclosed: what stands in a comprehension or a lambda, where what is assigned would be a variable of two functions.
    kept: by the identity of an expression whose value is needed twice, the name that holds it.
    updates: is the statement ``x[mask] += y``?
    """

    def __init__(self, place: Place, scope: ModuleScope, root: ast.AST) -> None:
        self._place, self._scope = place, scope
        self._evidence = evidence_of(place.function, scope)
        self.found: dict[int, Question] = {}
        self.kept: dict[int, str] = {}
        self.enclosed = enclosed_in(root)
        self.updates = False
        if isinstance(place.statement, (ast.If, ast.Assert)):
            self._decisions(place.statement.test)
            self._join(place.statement.test)
        elif isinstance(place.statement, ast.While):
            self._decisions(place.statement.test, "GM.decide_again(A)")
        self._settled = self._valued(root)
        for node in walk(root):
            look = _LOOKS.get(node.__class__)
            if look is not None:
                look(self, node)

    def _ask(self, node: ast.expr, question: Question) -> None:
        self.found.setdefault(id(node), question)

    def _ask_number(self, node: ast.expr, place: str = "") -> None:
        self._ask(node, Question(f"GM.known(A{_more(place)})", (node,)))

    def _ask_sizes(self, nodes: Iterable[ast.expr], owner: ast.expr, place: str = "") -> None:
        """Ask for arguments, or items, that stand for sizes only if it is a tensor, or a list, that is given them."""
        for node in nodes:
            again = self._again(owner)
            if again is not None:
                self._ask(node, Question(f"GM.size(B, A{_more(place)})", (node, again)))

    def _again(self, node: ast.expr) -> ast.expr | None:
        """The value of an expression that has been evaluated; None where no name can hold it."""
        if isinstance(node, ast.Name):
            return name(node.id, node)
        if id(node) in self.enclosed:
            return None
        return name(self.kept.setdefault(id(node), f"{OWN}kept{len(self.kept)}"), node)

    def _decisions(self, test: ast.expr, question: str = "GM.decide(A)") -> None:
        for operand in operands_of(test):
            if isinstance(operand, ast.Compare) and len(operand.ops) > 1:
                continue  # Python asks for the truth of the first half, whatever is asked of the rest
            if isinstance(operand, ast.Compare) and is_membership(operand):
                self._membership(operand, question)
                continue
            if not forms.is_read(operand) and (
                self._evidence.of_test(operand) is not Taint.NO
                or self._compares_items(operand)
                or self._evidence.is_of_strangers(operand)
            ):
                self._ask(operand, Question(question, (operand,)))

    def _join(self, test: ast.expr) -> None:
        """``if total == 0 and self.training``: false whatever the tensor holds, where the rest is."""
        lowered, operands = self._scope.lowered.get(test), getattr(test, "values", ())
        if lowered is not None and any(self._evidence.of_test(operand) is Taint.NO for operand in operands):
            self._ask(test, Question("GM.decide(A)", (lowered,)))

    def _valued(self, root: ast.AST) -> set[int]:
        """Ask for tests whose value is wanted, as [Where] has made them; gives what is in them, by identity."""
        if not self._scope.lowered or not isinstance(self._place.statement, (ast.AnnAssign, ast.Assign, ast.Return)):
            return set()
        tests = [node for node in walk(root) if isinstance(node, ast.expr) and node in self._scope.lowered]
        for test in tests:
            self._ask(test, Question("A", (self._scope.lowered[test],)))
        return {id(node) for node in walk(*tests)}

    def _membership(self, node: ast.Compare, question: str) -> None:
        """``token in ids``."""
        if self._evidence.of_test(node) is not Taint.NO:
            found = "GM.contains(A, B)" if isinstance(node.ops[0], ast.In) else "GM.negate(GM.contains(A, B))"
            self._ask(node, Question(question.replace("A", found), (node.left, node.comparators[0])))

    def _compares_items(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Compare) or not is_comparison(node):
            return False
        sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Name)]
        ordered = all(isinstance(operator, _ORDERING) for operator in node.ops)
        return any(self._may_be_tensor(side) or (ordered and self._is_handed_in(side)) for side in sides)

    def _conditional(self, node: ast.IfExp) -> None:
        self._decisions(node.test)

    def _negated(self, node: ast.UnaryOp) -> None:
        """``not (ids < 0).any()``, wherever it stands."""
        if isinstance(node.op, ast.Not) and id(node) not in self._settled:
            self._decisions(node.operand)

    def _repeated(self, node: ast.BinOp) -> None:
        """``[0] * count``."""
        match node:
            case ast.BinOp(ast.List(), ast.Mult(), count) if not isinstance(count, ast.Constant):
                self._ask_number(count)

    def _may_be_number(self, node: ast.expr) -> bool:
        return self._is_handed_in(node) or self._may_be_tensor(node)

    def _compared(self, node: ast.Compare) -> None:
        """``list(x.size()) == [batch, count]``: items of lists are compared one by one."""
        if len(node.ops) == 1 and isinstance(node.comparators[0], (ast.List, ast.Tuple)):
            self._ask_sizes(filter(self._may_be_number, node.comparators[0].elts), node.left)

    def _subscript(self, node: ast.Subscript) -> None:
        """``x[mask]``, ``x[:count]``."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Slice):
                bounds = [bound for bound in (part.lower, part.upper) if bound is not None]
                self._ask_sizes(filter(self._may_be_number, bounds), node.value)
        if not any(map(self._evidence.may_be_mask, parts)) and not self._selects_row(node):
            return
        statement = self._place.statement
        if isinstance(node.ctx, ast.Load):
            self._ask(node, Question("GM.taken(A, B)", (node.value, node.slice), may_fail=True))
        elif isinstance(statement, ast.AugAssign):
            self.updates = node is statement.target
        elif isinstance(statement, ast.Assign) and any(node is target for target in statement.targets):
            value = self._again(statement.value)
            if value is not None:
                self._ask(node, Question(_WRITTEN, (node.value, node.slice, value)))

    def _selects_row(self, node: ast.Subscript) -> bool:
        """``self.alphas[step]``: by a number that may be a tensor?"""
        is_read = isinstance(node.ctx, ast.Load) and isinstance(node.slice, (ast.Name, ast.BinOp))
        is_table = self._evidence.of(node.value) is not Taint.NO or is_held_by_self(node.value)
        return is_read and is_table and self._evidence.may_hold(node.slice)

    def _call(self, call: ast.Call) -> None:
        qualified = self._scope.imports.qualified(call.func)
        if forms.is_read(call):
            assert isinstance(call.func, ast.Attribute)
            if not qualified.startswith(STRANGERS):
                loops = isinstance(self._place.statement, ast.For) and call is self._place.statement.iter
                text = forms.LOOPED_OVER if loops and call.func.attr == "tolist" else forms.READS[call.func.attr]
                is_item = call.func.attr == "item" and is_number_alone(call, self._place.function)
                text = forms.ALONE if is_item else text
                self._ask(call, Question(text, (call.func.value,), may_fail=True))
        elif self._is_builtin(call.func, _NUMBERS):
            for argument in call.args if not call.keywords else ():
                may_be = self._may_be_tensor(argument) or self._evidence.may_give(argument)
                if may_be or self._evidence.is_item_handed_in(argument):
                    is_late = self._is_builtin(call.func, _LATE) or (
                        self._is_builtin(call.func, _WHOLE) and is_number_alone(call, self._place.function)
                    )
                    self._ask_number(argument, ast.unparse(call.func) if is_late else "")
        elif self._is_builtin(call.func, _TRUTHS):
            self._truths(call)
        elif isinstance(call.func, ast.Name) and (lacking := forms.lacking(call)) is not None:
            is_open = call.func.id == "sorted" or any(map(self._may_be_number, lacking.operands))
            if is_open and self._is_builtin(call.func, frozenset({call.func.id})):
                self._ask(call, lacking)
        elif is_draw(call, qualified) and not self._scope.is_local(call.func, self._place.function):
            self._ask(call, Question(f"GM.drawn({forms.letters(1 + len(call.args))})", (call.func, *call.args)))
        elif qualified in forms.OF_FLOATS and len(call.args) == 1 and self._may_be_tensor(call.args[0]):
            self._ask(call.args[0], Question("GM.as_float(A)", (call.args[0],)))
        elif qualified == "itertools.groupby" and self._is_grouped_read(call):
            self._ask(call, Question("GM.groupby(A, B)", tuple(call.args)))
        else:
            self._call_of_another(call, qualified)

    def _call_of_another(self, call: ast.Call, qualified: str) -> None:
        """A call of what is no function of Python."""
        function, of_torch = forms.called(call, self._scope, self._place.function)
        constant = forms.CONSTANTS.get(qualified) if of_torch and not call.args and not call.keywords else None
        if constant is not None:
            self._ask(call, constant)
            return
        if of_torch and qualified.startswith(forms.OPERATORS) and (operated := forms.operated(call)):
            self._ask(call, operated)
            return
        self._given_twice(call)
        shaped = forms.shaped_by_data(call, function, of_torch)
        if shaped and (function != "repeat_interleave" or self._may_be_number(shaped.operands[:2][-1])):
            self._ask(call, shaped)
        self._sizes(call, function, of_torch)

    def _given_twice(self, call: ast.Call) -> None:
        """``Function.apply(mask, mask)``."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "apply":
            return
        given: set[str] = set()
        for argument in call.args:
            if isinstance(argument, ast.Name) and argument.id in given:
                owner = self._again(call.func.value)
                if owner is not None:
                    self._ask(argument, Question("GM.apart(B, A)", (argument, owner)))
            elif isinstance(argument, ast.Name):
                given.add(argument.id)

    def _truths(self, call: ast.Call) -> None:
        """``all(steps)``, ``any(a < b for a, b in pairs)``."""
        if len(call.args) != 1 or call.keywords:
            return
        (items,) = call.args
        if isinstance(items, (ast.GeneratorExp, ast.ListComp)):
            self._decisions(items.elt)
        elif self._evidence.may_be_mask(items) or self._is_handed_in(items):
            self._ask(items, Question("GM.elements(A)", (items,)))

    def _is_grouped_read(self, call: ast.Call) -> bool:
        items = groups.grouped_read(call)
        if items is None or self._scope.is_local(call.func, self._place.function):
            return False
        if not forms.is_read(items) and not self._is_builtin(items.func, _COUNTING):
            return False
        return groups.is_used_at_once(call, self._place.statement, self._place.function.node, self._is_list)

    def _is_list(self, function: ast.expr) -> bool:
        return self._is_builtin(function, _LISTS)

    def _is_builtin(self, function: ast.expr, names: frozenset[str]) -> bool:
        return isinstance(function, ast.Name) and self._scope.names_one_of(function, names, self._place.function)

    def _sizes(self, call: ast.Call, function: str, of_torch: bool) -> None:
        """The arguments of the call that stand for numbers, and may be tensors."""
        asked = [
            argument
            for argument in sizes.arguments_of(call, function, of_torch)
            if (function in sizes.TAKE_NOTHING_ELSE and self._is_handed_in(argument))
            or sizes.is_always_asked(function, argument)
            or self._may_be_tensor(argument)
        ]
        place = sizes.place_of(function)
        if isinstance(call.func, ast.Attribute) and not of_torch:
            self._ask_sizes(asked, call.func.value, place)
        else:
            for argument in asked:
                self._ask_number(argument, place)

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
_LOOKS: dict[type[ast.AST], Callable[[Questions, Any], None]] = {
    ast.IfExp: Questions._conditional,
    ast.UnaryOp: Questions._negated,
    ast.Call: Questions._call,
    ast.Subscript: Questions._subscript,
    ast.Compare: Questions._compared,
    ast.BinOp: Questions._repeated,
}


def _more(place: str) -> str:
    """A further argument, if there is one."""
    return f", {place!r}" if place else ""


def operands_of(test: ast.expr) -> Iterator[ast.expr]:
    """The operands of a test whose truth Python asks for."""
    if isinstance(test, ast.BoolOp):
        for operand in test.values:
            yield from operands_of(operand)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from operands_of(test.operand)
    else:
        yield test
