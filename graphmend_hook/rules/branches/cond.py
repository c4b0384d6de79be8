"""[Cond] A branch whose sides cannot both be evaluated runs the one that is taken, inside the graph.

What it does
    Where [Where] refuses an ``if`` on tensor data, because a side calls a submodule or any other function, the sides
    become the two functions of a ``torch.cond``.  After an early ``return`` the rest of the function belongs to the
    other side.  What is known of the test while tracing ([Value]) decides it first.  Without gradients only, and only
    under ``fullgraph=True``, where the break would be an error, unless ``GRAPHMEND_COND=always``: the side that is not
    taken costs copies and the wrapper of a subgraph, which can be more than a graph break costs.

Why Dynamo breaks there
    The next instruction depends on data that only exists when the graph runs: "Data-dependent branching".

Before
    if scores.max() > self.threshold:
        hidden = self.expert(hidden)
    else:
        hidden = self.shared(hidden)

After
    if GM.compiling():                                  # folded while tracing; one Python call otherwise
        TEST = GM.settled(scores.max() > self.threshold)
        OUTCOME = None
        if GM.undecided(TEST):                          # a tensor?
            def THEN(EFFECTS, hidden, self): hidden = self.expert(hidden); return (hidden,)
            def ELSE(EFFECTS, hidden, self): hidden = self.shared(hidden); return (hidden,)
            OUTCOME = GM.conditional(TEST, (THEN, ELSE), (hidden, self), None)
        if OUTCOME is not None:
            hidden = OUTCOME[0]
        elif TEST:
            ...                                         # as written: breaks as before
    else:
        ...                                             # as written

Obligations proved here, each with its refusal
    GM107-R03  what a side reads is bound
    GM107-R05  what is read later is bound on both sides, or before
    GM107-R06  a ``return`` is not inside a loop, a ``with`` or a ``try``, and what follows it is a side too
    GM107-R07  the sides are small
    GM107-R08  the sides only assign to names, call, loop, branch or return, and bind no name that a closure reads
    GM107-R16  no handler in the function could catch what a side raises
    GM107-R17  the result is not written in place later, nor compared by identity

Obligations checked on the traced values, each falling back to the original statement (`traced_cond`)
    GM107-T01 to GM107-T05, listed in `codes`.

The native alternative, and what it loses
    ``torch.cond`` by hand: it fails hard where it cannot trace a side, refuses outputs that are inputs, and gives a
    parameter that is not used zeros for a gradient.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from ...analysis.names import DEFINITIONS, NamesIn, walk
from ...analysis.scopes import ModuleScope, Place
from ...analysis.taint import Taint
from ...diagnostics import Refusal
from ...templates import Template, constant, display, expression, name, replaced
from ..declined import Declined
from ..surroundings import unsuitable
from ..values.questions import Finder
from .branch import BranchCandidate, decided, pristine
from .identity import needs_identity
from .lower import Lowering
from .sides import MOST_STATEMENTS, Branch, following, returns, side_functions

CODE = "GM107"
_RETURN = Template("return RESULT")
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Pass),
    *(ast.Return, ast.Break, ast.Continue),
)
_FORBIDDEN = (ast.Await, ast.Yield, ast.YieldFrom, *DEFINITIONS)


class Cond:
    """Rewrites branches that [Where] refuses; see the module's docstring."""

    name = "cond"
    version = 1
    fallback = True
    trigger = re.compile(rb"\btorch\b")

    def match(self, place: Place, scope: ModuleScope) -> BranchCandidate | Refusal | None:
        statement = place.statement
        if not isinstance(statement, ast.If):
            return None
        lowering = Lowering(place, scope)
        if lowering.taint(statement.test) is Taint.NO or unsuitable(place, scope, CODE) or _asks_more(place, scope):
            return None
        if any(isinstance(node, ast.Raise) for node in walk(statement)):
            return None  # a guard
        try:
            condition = lowering.test(statement.test)
        except Declined:
            return None  # which [Where] has said
        try:
            branch = _branch(statement, place)
        except Declined as declined:
            return declined.refusal(CODE)
        return BranchCandidate(
            statement,
            [pristine(statement)],
            expression("GM.settled(A)", statement, A=condition),
            branch,
            [decided(statement, "GM.settle(TEST)")],
            returns(statement),
            join="conditional",
        )


def _asks_more(place: Place, scope: ModuleScope) -> bool:
    """Is there more in the test than its truth that [Value] would answer?"""
    finder = Finder(place, scope)
    finder.visit(place.statement.test)  # type: ignore[attr-defined]
    return any(question.text != "GM.decide(A)" for question in finder.found.values())


def _branch(statement: ast.If, place: Place) -> Branch:
    tail = following(place) if returns(statement) else []
    then, orelse = (block + tail if tail else block for block in (statement.body, statement.orelse))
    names = NamesIn.code(*then, *orelse)
    _check((then, orelse), names, place)
    bound_before = place.function.flow.bound_before(statement)
    needed = None if returns(statement) else sorted(names.bound & place.function.flow.needed_after(statement))
    for spelling in needed or ():
        if not all(spelling in bound_before | _certain(block) for block in (then, orelse)):
            raise Declined("R05", f"`{spelling}` is bound on one side only and read later; bind it before the branch")
    culprit = needs_identity(place, frozenset(needed or ()))
    if culprit:
        raise Declined("R17", f"`{culprit}` is written in place later, or compared by identity")
    if needed == []:
        raise Declined("R08", "the sides bind nothing that is read later")
    arguments = sorted((names.read | {*(needed or ())}) & place.function.hidden & bound_before)
    definitions = side_functions(_body(then, needed, statement), _body(orelse, needed, statement), arguments, statement)
    return Branch(definitions, tuple(arguments), tuple(needed or ()), ())


def _check(sides: tuple[list[ast.stmt], list[ast.stmt]], names: NamesIn, place: Place) -> None:
    nodes = [node for node in walk(*sides[0], *sides[1]) if isinstance(node, (ast.stmt, ast.expr))]
    if sum(isinstance(node, ast.stmt) for node in nodes) > MOST_STATEMENTS:
        raise Declined("R07", f"the sides have more than {MOST_STATEMENTS} statements")
    for node in nodes:
        strange = isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS)
        stores = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if strange or stores or isinstance(node, _FORBIDDEN):
            raise Declined("R08", f"a side contains `{ast.unparse(node)[:60]}`")
    if any(map(_leaves, sides)):
        raise Declined("R08", "a side leaves a loop that it stands in")
    if "next" in names.read:
        raise Declined("R08", "a side moves an iterator on")
    if {"super", "__class__"} & names.read or names.bound & place.function.flow.captured:
        raise Declined("R08", "a side reads the class around it, or binds a name that a closure reads")
    if place.inside_try:
        raise Declined("R16", "a handler in the function could catch what a side raises")
    bound_before = place.function.flow.bound_before(place.statement)
    for block in sides:
        own = NamesIn.code(*block)
        unbound = (own.read & place.function.hidden) - bound_before - own.bound
        if unbound:
            raise Declined("R03", f"`{min(unbound)}` may not be bound before the branch")


def _leaves(block: Iterable[ast.stmt]) -> bool:
    """Is there a ``break`` or ``continue`` of a loop around the block?"""
    for statement in block:
        if isinstance(statement, (ast.Break, ast.Continue)):
            return True
        if isinstance(statement, ast.If) and _leaves([*statement.body, *statement.orelse]):
            return True
        if isinstance(statement, (ast.For, ast.While)) and _leaves(statement.orelse):
            return True
    return False


def _certain(block: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that are bound at the end of the block, however it gets there."""
    found: frozenset[str] = frozenset()
    for statement in block:
        if isinstance(statement, ast.If):
            found |= _certain(statement.body) & _certain(statement.orelse)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= NamesIn.code(*targets).bound
    return found


def _body(block: list[ast.stmt], needed: list[str] | None, at: ast.stmt) -> list[ast.stmt]:
    """What the function of a side does: it returns a tuple of what is needed, or of what it returned."""
    if needed is None:
        return [replaced(statement, _in_a_tuple) for statement in block]
    given = display([name(each, at) for each in needed], at)
    # The very list that other rules edit.
    falling = ast.copy_location(ast.If(constant(True, at), block, []), at)
    return [*([falling] if block else []), *_RETURN.fill(at, RESULT=given)]


def _in_a_tuple(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, ast.Return):
        return None
    value = node.value or ast.copy_location(ast.Constant(None), node)
    return ast.copy_location(ast.Return(display([value], value)), node)
