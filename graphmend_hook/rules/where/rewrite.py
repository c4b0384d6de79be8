"""[Where] A branch on tensor data evaluates both sides and selects, instead of breaking the graph.

What it does
    ``if``/``elif``/``else``, also without ``else``, with an early ``return`` or as a conditional expression: while
    tracing, if the test turns out to be a tensor, both sides are evaluated as functions of what they read, and
    ``torch.where`` selects what they bind, return or store on an object.

Why Dynamo breaks there
    The next instruction depends on data that only exists when the graph runs: "Data-dependent branching".

Before
    if h.dtype == torch.float16 and torch.isinf(h).any():
        clamp_value = torch.finfo(h.dtype).max - 1000
        h = torch.clamp(h, min=-clamp_value, max=clamp_value)

After
    if GM.compiling():                                  # folded while tracing; one Python call otherwise
        TEST = h.dtype == torch.float16 and ...         # evaluated once
        OUTCOME = None
        if GM.undecided(TEST):                          # a tensor?
            def THEN(EFFECTS, h): ...; return (h,)
            def ELSE(EFFECTS, h): return (h,)
            OUTCOME = GM.select(TEST, (THEN, ELSE), (h,), None)
        if OUTCOME is not None:
            h = OUTCOME[0]
        elif TEST:
            ...                                         # as written: breaks as before
    else:
        ...                                             # as written

Also
    ``break``, ``continue`` and ``return`` under a test of data, in a ``for`` loop: what follows is a side (`exits`).
    ``while`` on data, without gradients, is `torch.while_loop` (`loops`).
    What ``return not x.isnan().any()`` and ``ok = a.all() and b.all()`` give, [Value] asks for (`valued_tests`).

Obligations
    `codes` and `shared.codes` have them: proved here, or checked on the traced values (`shared.traced_sides`).

The native alternative, and what it loses
    ``torch.cond`` needs functions, refuses side effects and aliases, and fails hard where it cannot trace a side.
"""

from __future__ import annotations

import ast
import re

from ...diagnostics import Refusal
from ...source.deep_exits import says_whether_left
from ...source.names import enclosed_in, walk
from ...source.scopes import ModuleScope, Place
from ...source.taint import Taint, evidence_of
from ...source.templates import Template, constant, expression, replaced
from ..base import Declined, Ready, unsuitable
from ..shared.blocks import following, has_effect, returns
from ..shared.branch import BranchCandidate
from ..shared.identity import is_looked_at
from ..shared.lower import Lowering, heard, of_data, tests_of
from ..shared.shared_calls import Hoisted, split
from ..shared.side import Side, assigning, returning, valued
from .codes import CAUGHT, SEVERAL_CONDITIONALS
from .exits import LoopCandidate, branch_at, exits_at, loop_at
from .loops import WhileCandidate, while_at
from .valued_tests import keep_values

CODE = "GM102"
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_WITH_CONDITIONAL = Template("if GM.compiling():\n    SIDES\n    TRACED\nelse:\n    ORIGINAL")
_CONDITIONAL = (
    "OUTCOME[0] if WHEN"
    " and (OUTCOME := GM.select(TEST, (THEN, ELSE), (ARGUMENTS,), None)) is not None"
    " else BODY if GM.settle(TEST) else ORELSE"
)
# Where what a branch binds is written to, or looked at as an object, behind it: in an export nothing sees that.
_IN_DYNAMO = " and GM.tracing()"


Found = BranchCandidate | LoopCandidate | Ready | Refusal | WhileCandidate


class Where:
    """Rewrites branches that bind, return or store; see the module's docstring."""

    name = "where"
    version = 35
    fallback = False
    triggers = (re.compile(rb"\btorch\b"),)

    def match(self, place: Place, scope: ModuleScope) -> Found | None:
        statement = place.statement
        if isinstance(statement, ast.For):
            return loop_at(place, scope, CODE)
        tests = tests_of(statement)
        found: BranchCandidate | Ready | Refusal | WhileCandidate | None
        try:
            if isinstance(statement, ast.While):
                found = while_at(place, scope, CODE)
            elif isinstance(statement, ast.If):
                lowering = of_data(statement.test, place, scope, CODE)
                found = self._branch(statement, place, lowering) if isinstance(lowering, Lowering) else lowering
            elif isinstance(statement, ast.Assign) and says_whether_left(statement):
                found = _left(statement, place, scope)
            else:
                keep_values(place, scope)
                conditionals = _conditionals(place, scope)
                tests = tests or [node.test for node in conditionals]
                found = _conditional(conditionals, place, scope) if conditionals else None
        except Declined as declined:
            found = declined.refusal(CODE)
        return heard(found, tests, place, scope)

    def _branch(self, statement: ast.If, place: Place, lowering: Lowering) -> BranchCandidate:
        found = exits_at(place)
        if found is not None:
            return branch_at(statement, found, lowering)
        condition = lowering.test(statement.test)
        if isinstance(statement.test, ast.BoolOp):
            lowering.scope.lowered[statement.test] = condition
        hoisted, is_held = Hoisted(), False
        if returns(statement):
            tail = following(place)
            then, orelse = statement.body + tail, statement.orelse + tail
            branch = returning(then, orelse, Side(lowering))
        else:
            then, orelse, hoisted = split(statement, lowering)
            needed = place.function.flow.needed_after(statement) | hoisted.needed
            branch = assigning(statement, then, orelse, Side(lowering), needed, lazy=hoisted.lazy)
            is_held = is_looked_at(place, branch.names)
        if place.inside_try and has_effect(then, orelse):
            raise Declined(CAUGHT, "a handler in the function could catch what a side raises or logs")
        return BranchCandidate(
            statement,
            condition,
            branch,
            "GM.settle(TEST)",
            when=_when(hoisted, is_held, statement),
            prepare=hoisted.before,
            finish=hoisted.after,
        )


def _when(hoisted: Hoisted, is_held: bool, at: ast.If) -> ast.expr | None:
    """When the sides are asked, if not for every tensor: a call that they share is one of a method of torch's."""
    if hoisted.shared is None:
        return expression("GM.undecided(TEST)" + _IN_DYNAMO, at) if is_held else None
    owner, method = hoisted.shared.value, constant(hoisted.shared.attr, at)
    return expression("GM.undecided(TEST) and GM.is_of_module(OWNER, METHOD)", at, OWNER=owner, METHOD=method)


def _left(statement: ast.Assign, place: Place, scope: ModuleScope) -> Ready | Refusal | None:
    """The test of an exit that stands deeper in a loop."""
    lowering = of_data(statement.value, place, scope, CODE)
    if not isinstance(lowering, Lowering):
        return lowering
    tested = expression("GM.tested(A)", statement, A=lowering.test(statement.value))
    return Ready([ast.copy_location(ast.Assign(statement.targets, tested), statement)])


def _conditionals(place: Place, scope: ModuleScope) -> list[ast.IfExp]:
    """The conditional expressions on tensor data in a simple statement; those for which something speaks, if any."""
    statement = place.statement
    if not isinstance(statement, _SIMPLE) or not scope.may_hold(b"else", statement):
        return []
    enclosed, evidence = enclosed_in(statement), evidence_of(place.function, scope)
    nodes = [node for node in walk(statement) if isinstance(node, ast.IfExp) and id(node) not in enclosed]
    taints = [evidence.of_test(node.test) for node in nodes]
    most = max(taints, default=Taint.NO)
    least = Taint.OPEN if most is Taint.OPEN else Taint.MAYBE
    return [node for node, taint in zip(nodes, taints, strict=True) if taint >= least]


def _conditional(found: list[ast.IfExp], place: Place, scope: ModuleScope) -> Ready | Refusal:
    """The candidate for the statement at `place`, which holds these conditional expressions on tensor data.

    The expression is replaced where it stands, so evaluation keeps its order.
    """
    statement, lowering = place.statement, Lowering(place, scope)
    refusal = unsuitable(place, scope, CODE)
    if refusal is not None:
        return refusal
    if len(found) > 1:
        raise Declined(
            SEVERAL_CONDITIONALS, "the statement has several conditional expressions on tensors; write one a statement"
        )
    (node,) = found
    stored = statement.targets if isinstance(statement, ast.Assign) else []
    is_held = is_looked_at(place, (target.id for target in stored if isinstance(target, ast.Name)))
    condition = lowering.test(node.test)
    branch = valued(node, statement, Side(lowering))
    decided = {"BODY": node.body, "ORELSE": node.orelse}
    when = expression("GM.undecided(TEST := CONDITION)" + _IN_DYNAMO * is_held, node, CONDITION=condition)
    value = expression(_CONDITIONAL, node, WHEN=when, ARGUMENTS=branch.arguments, **decided)
    traced = replaced(statement, lambda part: value if part is node else None)
    sides = branch.definitions(statement)
    return Ready(_WITH_CONDITIONAL.fill(statement, SIDES=sides, TRACED=traced, ORIGINAL=statement))
