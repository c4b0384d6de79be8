"""[Trap] A guard keeps its condition in the graph and raises its exception from the end of it.

What it does
    ``if cond: raise E(...)`` (also in ``elif`` and ``else``), ``assert cond, msg``, and calls of known check functions
    (`checks.CHECKS`): while tracing, if the condition is a tensor, it becomes an output of the graph, with the values
    that the message needs; right after the graph the epilogue looks at it and raises the exception of the original
    statement, from a frame with its file, line and function.

Why Dynamo breaks there
    "Data-dependent branching", or ``Tensor.item()`` inside ``torch._check_tensor_all`` and its kin.  For
    ``assert tensor, "constant"`` Dynamo has a rewrite of its own, which raises RuntimeError.

Before
    if ids.max() >= n:
        raise ValueError(f"id {ids.max().item()} of {n}")

After
    if GM.compiling():
        TEST = ids.max() >= n
        OUTCOME = None
        if GM.undecided(TEST):
            def THEN(EFFECTS, ids, n):
                def DELIVERY(TARGET, VALUES): raise ValueError(f"id {VALUES[0].max().item()} of {VALUES[1]}")
                EFFECTS.append((None, None, DELIVERY, "raise ...", (ids, n)))
                return None
            def ELSE(EFFECTS, ids, n): return ()
            OUTCOME = GM.select(TEST, (THEN, ELSE), (ids, n), None)
        ...                                             # else: as written
    else:
        ...                                             # as written

When a guard fails
    The function runs again as it was written (`dynamo.rerun`), before what Dynamo replays after the graph, so nothing
    that stands behind the guard has happened.  Where it cannot be run again, the exception is raised by itself, and
    what the graph has done behind the guard has been done.  If an operation that the guard protects fails inside the
    graph, the guard's exception wins, as in eager, in the same way.

Sides that do more than raise
    Where one side of an ``if`` always raises, and does what may not be done if it is not taken, ``GM.spared`` makes its
    condition a guard, for which the function must be able to run again, and the other side alone is traced.

Obligations
    `codes` and `shared.codes` have them.  While tracing, the condition also has those of [Where] (GM102), and what goes
    to the epilogue those of [Defer] (GM101).

The native alternative, and what it loses
    ``torch._assert_async`` raises RuntimeError with a constant message, and ends the process's use of a CUDA device;
    GRAPHMEND_GUARDS=async selects it.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from typing import TypeGuard

from ...diagnostics import Refusal
from ...source.names import item_of, walk
from ...source.scopes import ModuleScope, Place
from ...source.taint import Taint
from ...source.templates import Template, constant, expression, replaced
from ..base import Candidate, Declined, unsuitable
from ..shared.blocks import raising_side
from ..shared.branch import BranchCandidate, RaisingCandidate
from ..shared.lower import Lowering, heard, of_data, tests_of
from ..shared.side import Side, assigning, guarding
from . import tries
from .checks import CHECKS, Check
from .codes import CAUGHT, CONDITION_HIDDEN

CODE = "GM103"
_FACTORISATIONS = {function.rpartition(".")[2] for function in tries.FACTORISATIONS}
_GUARDING = (ast.Raise, ast.Pass, ast.If)
_TELLING = (*_GUARDING, ast.Expr)
# Of an `assert` in a graph Dynamo makes its text with tensors in mind: of what is not one, Python raises.
_CHECKED = Template(
    """
if GM.undecided(TEST):
    if GM.spared(TEST, False) is None:
        OF_TENSOR
elif not TEST:
    FAILING
"""
)


class Trap:
    """Rewrites guards; see the module's docstring."""

    name = "trap"
    version = 31
    fallback = False
    triggers = (
        re.compile(rb"(?s)\A(?=.*\btorch\b).*\b(?:raise|assert|" + "|".join(sorted(CHECKS)).encode() + rb")\b"),
        re.compile(rb"\btorch\.(?:linalg\.)?(?:" + "|".join(sorted(_FACTORISATIONS)).encode() + rb")\("),
    )

    def match(self, place: Place, scope: ModuleScope) -> Candidate | Refusal | None:
        found: Candidate | Refusal | None
        try:
            found = self._found(place.statement, place, scope)
        except Declined as declined:
            found = declined.refusal(CODE)
        return heard(found, tests_of(place.statement), place, scope)

    def _found(self, statement: ast.stmt, place: Place, scope: ModuleScope) -> Candidate | Refusal | None:
        if _is_guard(statement):
            lowering = of_data(statement.test, place, scope, CODE)
            if not isinstance(lowering, Lowering):
                return lowering
            form = _branch if isinstance(statement, ast.If) else self._assertion
            return _caught(place) or form(statement, lowering)  # type: ignore[arg-type]
        if isinstance(statement, ast.Try):
            return tries.match(statement, place, scope, CODE)
        if isinstance(statement, ast.If) and raising_side(statement) is not None and not place.inside_try:
            return _raising(statement, of_data(statement.test, place, scope, CODE))
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            check = CHECKS.get(scope.imports.qualified(statement.value.func).rpartition(".")[2])
            if check is not None:
                refusal = _caught(place) or unsuitable(place, scope, CODE)
                return refusal or _checked(statement, statement.value, check, Lowering(place, scope))
        return None

    @staticmethod
    def _assertion(statement: ast.Assert, lowering: Lowering) -> Candidate:
        failing = ast.copy_location(ast.Assert(expression("False", statement), statement.msg), statement)
        test, branch = lowering.test(statement.test), None
        with contextlib.suppress(Declined):  # a message that cannot be made later
            branch = guarding(statement, failing, Side(lowering))
        reads = constant(test is not statement.test, statement)
        asserted = expression("GM.asserted(TEST, READS)", statement, READS=reads)
        of_tensor = ast.copy_location(ast.Assert(asserted, statement.msg), statement)
        checked = _CHECKED.fill(statement, OF_TENSOR=of_tensor, FAILING=failing)[0]
        if branch is None:
            return RaisingCandidate(statement, test, checked)
        return BranchCandidate(statement, test, branch, checked=checked)


def _branch(statement: ast.If, lowering: Lowering) -> BranchCandidate | RaisingCandidate:
    """Both sides, or that which does not raise, where the other does what may only be done if it is taken."""
    condition = lowering.test(statement.test)
    try:
        branch = assigning(statement, statement.body, statement.orelse, Side(lowering), frozenset())
    except Declined:
        if raising_side(statement) is None:
            raise
        return RaisingCandidate(statement, condition)
    return BranchCandidate(statement, condition, branch)


def _raising(statement: ast.If, lowering: Lowering | Refusal | None) -> RaisingCandidate | None:
    """A branch that is no guard, but has a side that raises; None where it is the business of another rule.

    What such a side computes may break the graph; if it has but effects, both sides can be traced.
    """
    if not isinstance(lowering, Lowering):
        return None
    found: BranchCandidate | RaisingCandidate | None = None
    with contextlib.suppress(Declined):
        found = _branch(statement, lowering)
        failing = statement.body if raising_side(statement) else statement.orelse
        if any(
            isinstance(node, ast.stmt) and not isinstance(node, _TELLING) for each in failing for node in walk(each)
        ):
            found = RaisingCandidate(statement, lowering.test(statement.test))
    return found if isinstance(found, RaisingCandidate) else None


def _checked(statement: ast.Expr, call: ast.Call, check: Check, lowering: Lowering) -> BranchCandidate | None:
    condition, raised = check.condition(call), check.raised(call)
    if condition is None or raised is None:
        raise Declined(CONDITION_HIDDEN, "the condition of the check is not written out among its arguments")
    if lowering.taint(condition) is Taint.NO and isinstance(condition, (ast.Constant, ast.Lambda)):
        return None
    if check.needs_bool and not lowering.gives_bool(condition):
        return None  # of a tensor it is an error, whatever it holds
    # A number that is counted out of a selection makes a bool, where the check would take a tensor as well.
    reads = check.reads_condition or (not check.needs_tensor and lowering.counts_selection(condition))
    lowered = lowering.test(condition) if reads else condition

    def checking(given: ast.expr) -> ast.stmt:
        """The check, of another condition."""
        return replaced(statement, lambda node: given if node is condition else None)

    false = ast.copy_location(ast.Constant(False), condition)
    failing = statement if check.needs_tensor else checking(false)
    evaluated = condition if check.needs_tensor else None
    branch = guarding(statement, failing, Side(lowering), evaluated, raised)
    read = "TEST.item() if GM.undecided(TEST) else TEST" if item_of(condition) else "bool(TEST)"
    checked = checking(expression(read if reads else "TEST", condition))
    predicate = expression("TEST" if reads else "GM.every(TEST)", statement)
    asked = "GM.undecided(TEST) and GM.is_check(FUNCTION)" + " and GM.is_bool(TEST)" * check.needs_bool
    when = expression(asked, statement, FUNCTION=call.func)
    return BranchCandidate(statement, lowered, branch, checked=checked, predicate=predicate, when=when)


def _is_guard(statement: ast.stmt) -> TypeGuard[ast.If | ast.Assert]:
    if isinstance(statement, ast.Assert):
        return not sys.flags.optimize
    return isinstance(statement, ast.If) and _only_guards(statement)


def _only_guards(statement: ast.If) -> bool:
    """Do the blocks of the ``if`` raise, and do nothing else?"""
    inside = [*statement.body, *statement.orelse]
    if not all(isinstance(node, _GUARDING) and (not isinstance(node, ast.If) or _only_guards(node)) for node in inside):
        return False
    return any(isinstance(node, (ast.Raise, ast.If)) for node in inside)


def _caught(place: Place) -> Refusal | None:
    # While tracing, an `assert` that is left alone becomes Dynamo's, which nothing catches.
    if place.inside_try and not isinstance(place.statement, ast.Assert):
        return Refusal(CAUGHT, "a handler in the function could catch the exception; move the guard out of it")
    return None
