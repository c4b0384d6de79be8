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

Obligations
    `codes` has them.  Those checked while tracing fall back to the original expression (`traced_contents`).

The native alternative, and what it loses
    ``torch._dynamo.config.capture_scalar_outputs`` makes every such number of the program a symbol.  A symbol has no
    value: a branch on it breaks or fails, and Inductor cannot lower some sizes made of it.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass

from ...diagnostics import Refusal
from ...source.library_functions import PARAMETERS
from ...source.scopes import ModuleScope, Place
from ...source.templates import OWN, Template, expression, name, replaced
from ..base import compiled_elsewhere
from .forms import Question, outside_of_subscript
from .questions import Questions

CODE = "GM104"
_HEADERS: dict[type[ast.stmt], str] = {ast.If: "test", ast.While: "test", ast.For: "iter"}
_SWITCH = Template("if GM.compiling():\n    TRACED\nelse:\n    ORIGINAL")
# ``x[mask] += y``, each part evaluated once, in Python's order.
_OWNER, _INDEX, _TAKEN, _TARGET = (f"{OWN}{part}" for part in ("owner", "index", "taken", "target"))
_UPDATED = Template(
    f"""
{_OWNER} = OWNER
{_INDEX} = INDEX
{_TAKEN} = GM.taken({_OWNER}, {_INDEX})
if {_TAKEN} is None:
    {_TAKEN} = {_OWNER}[{_INDEX}]
UPDATE
{_TARGET} = GM.written_to({_OWNER}, {_INDEX}, {_TAKEN})
{_TARGET}[0][{_TARGET}[1]] = {_TAKEN}
"""
)
# How a function of `library_operators` begins.
_OPERATED = Template(
    """
if GM.tracing():
    VALUES = GM.as_operator(ARGUMENTS)
    if VALUES is not None:
        return VALUES
"""
)
_SIMPLE = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


@dataclass
class ValueCandidate:
    """A statement, and the questions in it.  temporaries: how many names of ours it has."""

    statement: ast.stmt
    questions: Questions
    temporaries: int = 0

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        at = self.statement
        if self.questions.updates:
            assert isinstance(at, ast.AugAssign)
            return _SWITCH.fill(at, TRACED=self._updated(at), ORIGINAL=at)
        if isinstance(at, _SIMPLE):
            return _SWITCH.fill(at, TRACED=replaced(at, self._answer), ORIGINAL=at)
        named = self.questions.found.keys() | self.questions.kept.keys()
        return [replaced(mended, lambda part: self._switch(part) if id(part) in named else None)]

    def _updated(self, at: ast.AugAssign) -> list[ast.stmt]:
        assert isinstance(at.target, ast.Subscript)
        taken = name(_TAKEN, at, ast.Store())
        update = ast.copy_location(ast.AugAssign(taken, at.op, replaced(at.value, self._answer)), at)
        owner, index = replaced(at.target.value, self._answer), outside_of_subscript(at.target.slice)
        return _UPDATED.fill(at, OWNER=owner, INDEX=index, UPDATE=update)

    def _switch(self, node: ast.AST) -> ast.expr:
        """The question in the head of a statement with blocks, which is not to be there twice."""
        assert isinstance(node, ast.expr)
        answer = self._answer(node)
        assert isinstance(answer, ast.expr)
        text = "ANSWER if GM.compiling() else ORIGINAL"
        if isinstance(self.statement, ast.While) and node is self.statement.test:
            text = f"({text},)[0]"  # with one jump back: Dynamo takes a second one for an outer loop
        return expression(text, node, ANSWER=answer, ORIGINAL=node)

    def _answer(self, node: ast.AST) -> ast.AST | None:
        """What stands in the place of a part of the statement: a question, a value that is kept, both, or None."""
        question, spelling = self.questions.found.get(id(node)), self.questions.kept.get(id(node))
        if question is None and spelling is None:
            return None
        assert isinstance(node, ast.expr)
        value = self._asked(question, node) if question else self._inside(node, node)
        if spelling is None:
            return value
        kept = copy.copy(value)  # `ast.unparse` keeps by node whether it has parentheses, and here it has
        return ast.copy_location(ast.NamedExpr(name(spelling, node, ast.Store()), kept), node)

    def _inside(self, expression: ast.expr, node: ast.expr) -> ast.expr:
        """`expression` with everything in it replaced but for `node` itself."""
        return replaced(expression, lambda part: None if part is node else self._answer(part))

    def _asked(self, question: Question, node: ast.expr) -> ast.expr:
        operands = [outside_of_subscript(self._inside(operand, node)) for operand in question.operands]
        if question.may_fail:
            return self._fallible(question, node, operands)
        asked = question.asked(operands, node)
        if isinstance(asked, ast.Subscript) and isinstance(node, ast.Subscript):
            asked.ctx = node.ctx
        return asked

    def _fallible(self, question: Question, node: ast.expr, operands: list[ast.expr]) -> ast.expr:
        """The answer, or where there is none, the expression over what its operands were: then the graph breaks there.

        Operands and answer get names.  In a comprehension, where they cannot, they are arguments of functions.
        """
        *spelled, answer = [f"{OWN}asked{self.temporaries + place}" for place in range(1, len(operands) + 2)]
        self.temporaries += len(operands) + 1
        loaded = [name(each, node) for each in spelled]
        original = question.original(node, loaded)
        if id(node) in self.questions.enclosed:
            return expression(
                "GM.answered(lambda NAMES: ANSWER, lambda NAMES: ORIGINAL, OPERANDS)",
                node,
                NAMES=spelled,
                ANSWER=question.asked(loaded, node),
                ORIGINAL=original,
                OPERANDS=operands,
            )
        given = [
            ast.copy_location(ast.NamedExpr(name(each, node, ast.Store()), operand), node)
            for each, operand in zip(spelled, operands, strict=True)
        ]
        return expression(
            "KEPT if (KEPT := ANSWER) is not None else ORIGINAL",
            node,
            KEPT=answer,
            ANSWER=question.asked(given, node),
            ORIGINAL=original,
        )


@dataclass(frozen=True)
class OperatorCandidate:
    """The first statement of a function that may be an operator of the graph.  names: of its parameters."""

    names: tuple[str, ...]

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        is_docstring = isinstance(mended, ast.Expr) and isinstance(mended.value, ast.Constant)
        operated = _OPERATED.fill(mended, ARGUMENTS=[name(each, mended) for each in self.names])
        return [mended, *operated] if is_docstring else [*operated, mended]


class Value:
    """Rewrites reads of numbers out of tensors; see the module's docstring."""

    name = "value"
    version = 38
    fallback = True
    triggers = (re.compile(rb"\btorch\b"),)

    def match(self, place: Place, scope: ModuleScope) -> ValueCandidate | OperatorCandidate | Refusal | None:
        parameters = _operated(place)
        if parameters is not None:
            return OperatorCandidate(parameters)
        root = _expressions_of(place.statement)
        if root is None:
            return None
        questions = Questions(place, scope, root)
        if not questions.found and not questions.updates:
            return None
        return compiled_elsewhere(place, scope, CODE) or ValueCandidate(place.statement, questions)


def _operated(place: Place) -> tuple[str, ...] | None:
    """The parameters of the function that begins there, if it has the name and the parameters of an operator's."""
    node, names = place.function.node, PARAMETERS.get(place.function.qualname)
    if names is None or place.statement is not node.body[0]:
        return None
    arguments = node.args
    is_plain = not (arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg)
    return names if is_plain and names == tuple(argument.arg for argument in arguments.args) else None


def _expressions_of(statement: ast.stmt) -> ast.AST | None:
    """What a statement evaluates itself: all of a simple one, the head of one with blocks."""
    if isinstance(statement, _SIMPLE):
        return statement
    head: ast.AST | None = getattr(statement, _HEADERS.get(type(statement), ""), None)
    return head
