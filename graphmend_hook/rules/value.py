"""[Value] A number read out of a tensor is taken from what is known while tracing, instead of breaking the graph.

What it does
    Where a tensor's data turns into a number of Python or a size (``.item()``, ``.tolist()``, ``int(t)``, a branch, an
    argument, a mask), it is asked for, while tracing, what the tensor holds.  Known are tensors that the traced code
    makes of Python's numbers (shapes, configuration), small tensors that a module holds, buffers among them, and what
    cheap operations make of the frame's inputs.  What comes of a buffer or an input has a guard: with another value
    the code is compiled anew, a few times at most.  A whole number, or a shape, that is not known becomes a symbol of
    the graph, by PyTorch's own capture, for this one operation; if the frame cannot be compiled so, it is traced anew
    without.

Why Dynamo breaks there
    The number depends on data that only exists when the graph runs: "Unsupported Tensor.item() call with
    capture_scalar_outputs=False", "Data dependent operator".

Before
    padded = nn.functional.pad(hidden_states, (self.padding_total, extra_padding))
    if self.probs[index] > 0:
        ...

After
    if GM.compiling():                                  # folded while tracing; one Python call otherwise
        padded = nn.functional.pad(hidden_states, GM.known((self.padding_total, extra_padding)))
    else:
        padded = ...                                    # as written
    if GM.decide(self.probs[index] > 0) if GM.compiling() else self.probs[index] > 0:
        ...

Obligations proved here, each with its refusal
    GM104-R12  no other compiler compiles the function

Obligations checked on the traced values, each falling back to the original expression (`runtime.values`)
    GM104-T01 to GM104-T05, listed in `runtime.refusals`.

The native alternative, and what it loses
    ``torch._dynamo.config.capture_scalar_outputs`` makes every such number of the program a symbol.  A symbol has no
    value: a branch on it breaks or fails, and Inductor cannot lower some sizes made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..analysis.names import root_name, walk
from ..analysis.scopes import ModuleScope, Place
from ..analysis.taint import Taint, is_comparison
from ..diagnostics import Refusal
from ..templates import OWN, Template, expression, name, replaced
from . import sizes
from .operators import TORCH
from .surroundings import OPERATIONS, compiled_elsewhere, evidence

CODE = "GM104"
_READS = {"item": "GM.item(A)", "tolist": "GM.tolist(A)"}  # by method
_NUMBERS = frozenset({"bool", "float", "int", "range"})
_TRUTHS = frozenset({"all", "any"})  # of Python: they look at one item after the other
_HEADERS: dict[type[ast.stmt], str] = {ast.If: "test", ast.While: "test", ast.For: "iter"}
_SWITCH = Template("if GM.compiling():\n    TRACED\nelse:\n    ORIGINAL")
# ``x[mask] += y``, each part evaluated once, in Python's order.
_UPDATED = Template(
    """
OWNED = OWNER
INDEXED = INDEX
TAKEN = GM.selected(KEPT, CHOSEN)
UPDATE
KEPT[CHOSEN] = RESULT
"""
)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIMPLE = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


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


@dataclass
class ValueCandidate:
    """A statement, and by the identity of each expression in it that reads a number: the question in its place.

    enclosed: what stands in a comprehension or a lambda, where what is assigned would be a variable of two functions.
    updates: is it ``x[mask] += y``?
    """

    statement: ast.stmt
    questions: dict[int, Question]
    enclosed: frozenset[int]
    updates: bool = False
    temporaries: int = 0

    def emit(self) -> list[ast.stmt]:
        at = self.statement
        if self.updates:
            assert isinstance(at, ast.AugAssign)
            return _SWITCH.fill(at, TRACED=self._updated(at), ORIGINAL=at)
        if isinstance(at, _SIMPLE):
            return _SWITCH.fill(at, TRACED=replaced(at, self._answer), ORIGINAL=at)
        return [replaced(at, lambda part: self._switch(part) if id(part) in self.questions else None)]

    def _updated(self, at: ast.AugAssign) -> list[ast.stmt]:
        assert isinstance(at.target, ast.Subscript)
        parts = [f"{OWN}{part}" for part in ("owner", "index", "taken")]
        loaded = [name(part, at) for part in parts]
        stored = [name(part, at, ast.Store()) for part in parts]
        update = ast.AugAssign(stored[2], at.op, replaced(at.value, self._answer))
        return _UPDATED.fill(
            at,
            OWNED=stored[0],
            OWNER=at.target.value,
            INDEXED=stored[1],
            INDEX=_outside_of_subscript(at.target.slice),
            TAKEN=stored[2],
            KEPT=loaded[0],
            CHOSEN=loaded[1],
            UPDATE=ast.copy_location(update, at),
            RESULT=loaded[2],
        )

    def _switch(self, node: ast.AST) -> ast.expr:
        """The question in the head of a statement with blocks, which is not to be there twice."""
        assert isinstance(node, ast.expr)
        answer = self._answer(node)
        assert isinstance(answer, ast.expr)
        return expression("ANSWER if GM.compiling() else ORIGINAL", node, ANSWER=answer, ORIGINAL=node)

    def _answer(self, node: ast.AST) -> ast.AST | None:
        question = self.questions.get(id(node))
        if question is None:
            return None
        assert isinstance(node, ast.expr)
        operands = {
            hole: replaced(operand, lambda part: None if part is node else self._answer(part))
            for hole, operand in zip("AB", question.operands, strict=False)
        }
        if question.original and id(node) not in self.enclosed:
            return self._fallible(question, node, operands)
        asked = expression(question.whole or question.text, node, **operands)
        if question.keyword:
            assert isinstance(node, ast.Call)
            keyword = ast.copy_location(ast.keyword(question.keyword, asked), node)
            return ast.copy_location(ast.Call(node.func, node.args, [*node.keywords, keyword]), node)
        return asked

    def _fallible(self, question: Question, node: ast.expr, operands: dict[str, ast.expr]) -> ast.expr:
        """The answer, or where there is none, the original of the operands that have been evaluated: it breaks here."""
        loaded, stored = {}, {}
        for hole, operand in operands.items():
            self.temporaries += 1
            spelling = f"{OWN}{self.temporaries}"
            loaded[hole] = name(spelling, node)
            stored[hole] = ast.copy_location(ast.NamedExpr(name(spelling, node, ast.Store()), operand), node)
        self.temporaries += 1
        kept = f"{OWN}{self.temporaries}"
        answer = expression(question.text, node, **stored)
        return expression(
            "KEPT if (STORED := ANSWER) is not None else ORIGINAL",
            node,
            KEPT=name(kept, node),
            STORED=name(kept, node, ast.Store()),
            ANSWER=answer,
            ORIGINAL=expression(question.original, node, **loaded),
        )


class Value:
    """Rewrites reads of numbers out of tensors; see the module's docstring."""

    name = "value"
    version = 2
    fallback = True
    trigger = re.compile(rb"\btorch\b")

    def match(self, place: Place, scope: ModuleScope) -> ValueCandidate | Refusal | None:
        root = _expressions_of(place.statement)
        if root is None:
            return None
        finder = _Finder(place, scope)
        finder.visit(root)
        if not finder.found and not finder.updates:
            return None
        if compiled_elsewhere(place, scope):
            return Refusal(f"{CODE}-R12", "another compiler compiles the function")
        return ValueCandidate(place.statement, finder.found, _enclosed(root), finder.updates)

    def rewrite(self, candidate: ValueCandidate) -> list[ast.stmt]:
        return candidate.emit()


def _expressions_of(statement: ast.stmt) -> ast.AST | None:
    """What a statement evaluates itself: all of a simple one, the head of one with blocks."""
    if isinstance(statement, _SIMPLE):
        return statement
    head: ast.AST | None = getattr(statement, _HEADERS.get(type(statement), ""), None)
    return head


class _Finder:
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
            if isinstance(node, ast.IfExp):
                self._decisions(node.test)
            elif isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.Subscript):
                self._subscript(node)
            elif isinstance(node, ast.Compare):
                self._sizes_compared(node)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                if not isinstance(node.right, ast.Constant):
                    self._ask("GM.known(A)", node.right)
            elif isinstance(node, ast.Slice):
                for bound in (node.lower, node.upper):
                    if bound is not None and (self._is_handed_in(bound) or self._may_be_tensor(bound)):
                        self._ask("GM.known(A)", bound)

    def _ask(self, text: str, asked: ast.expr) -> None:
        self.found.setdefault(id(asked), Question(text, (asked,)))

    def _decisions(self, test: ast.expr) -> None:
        for operand in _operands(test):
            if not _is_read(operand) and (
                self._evidence.of(operand) is not Taint.NO
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
        asked = _outside_of_subscript(index)
        if isinstance(node.ctx, ast.Load):
            self.found.setdefault(
                id(node), Question("GM.taken(A, B)", (node.value, asked), original="A[B]", whole="GM.selected(A, B)")
            )
        elif isinstance(self._place.statement, ast.AugAssign):
            self.updates = node is self._place.statement.target
        elif isinstance(node.ctx, ast.Store) and isinstance(self._place.statement, ast.Assign):
            self.found.setdefault(id(index), Question("GM.positions(A)", (asked,)))

    def _sizes_compared(self, node: ast.Compare) -> None:
        """``list(x.size()) == [batch, count]``: items of lists are compared one by one."""
        for operand in (node.left, *node.comparators):
            if isinstance(operand, (ast.List, ast.Tuple)):
                for item in operand.elts:
                    if self._is_handed_in(item) or self._may_be_tensor(item):
                        self._ask("GM.known(A)", item)

    def _shaped_by_data(self, call: ast.Call, name: str, of_torch: bool) -> bool:
        """``nonzero``, ``where`` of one tensor, ``repeat_interleave``."""
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
                asked = asked or (name in sizes.ALWAYS_ASKED and isinstance(argument, ast.Name))
                if asked or self._may_be_tensor(argument):
                    self._ask("GM.known(A)", argument)
        for keyword in call.keywords:
            if positions and keyword.arg in sizes.KEYWORDS and self._may_be_tensor(keyword.value):
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


def _enclosed(root: ast.AST) -> frozenset[int]:
    """The expressions in comprehensions and lambdas."""
    return frozenset(id(part) for node in walk(root) if isinstance(node, _SCOPES) for part in walk(node))


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


def _outside_of_subscript(index: ast.expr) -> ast.expr:
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
