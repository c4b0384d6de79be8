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
    GM107-R01, R10 to R12 as those of GM102 (`where`)
    GM107-R02  all operands of the test but the first can be evaluated in any case
    GM107-R03  what a side reads is bound
    GM107-R05  what is read later is bound on both sides, or before
    GM107-R06  a ``return`` is not inside a loop, a ``with`` or a ``try``, and what follows it is a side too
    GM107-R07  the sides are small, and so is the test
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
from collections.abc import Iterable
from dataclasses import replace

from ...analysis.names import DEFINITIONS, NamesIn, walk
from ...analysis.scopes import ModuleScope, Place
from ...diagnostics import Refusal
from ...templates import Template, display, expression, name, replaced
from ..declined import Declined
from ..values.questions import Finder
from .blocks import following, returns
from .branch import Branch, BranchCandidate
from .identity import check_identity
from .lower import MOST_STATEMENTS, Lowering, of_data

CODE = "GM107"
_RETURN = Template("return RESULT")
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Pass),
    *(ast.Return, ast.Break, ast.Continue),
)
_FORBIDDEN = (ast.Await, ast.Yield, ast.YieldFrom, *DEFINITIONS)


class Cond:
    """Rewrites branches by what their sides do; see the module's docstring."""

    name = "cond"
    version = 3
    fallback = True
    trigger = re.compile(rb"\btorch\b")

    def match(self, place: Place, scope: ModuleScope) -> BranchCandidate | Refusal | None:
        statement = place.statement
        if not isinstance(statement, ast.If) or any(isinstance(node, ast.Raise) for node in walk(statement)):
            return None
        lowering = of_data(statement.test, place, scope, CODE)
        if not isinstance(lowering, Lowering) or _asks_more(place, scope):
            return lowering if isinstance(lowering, Refusal) else None
        try:
            return CapturedCandidate(
                statement,
                expression("GM.settled(A)", statement, A=lowering.test(statement.test)),
                _branch(statement, place),
                "GM.settle(TEST)",
                join="conditional",
            )
        except Declined as declined:
            return declined.refusal(CODE)


class CapturedCandidate(BranchCandidate):
    """A branch whose sides do what is written in them; they are traced, so they have what was mended in them."""

    def _branch(self, mended: ast.stmt) -> Branch:
        if self._returns:
            return self.branch
        assert isinstance(mended, ast.If)
        given = _RETURN.fill(self.at, RESULT=display([name(each, self.at) for each in self.branch.names], self.at))
        return replace(self.branch, then=[*mended.body, *given], orelse=[*mended.orelse, *given])


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
    ends = [place.function.flow.bound_at_end(block) if block else bound_before for block in (then, orelse)]
    for spelling in needed or ():
        if not all(end is not None and spelling in end for end in ends):
            raise Declined("R05", f"`{spelling}` is bound on one side only and read later; bind it before the branch")
    check_identity(place, needed or ())
    if needed == []:
        raise Declined("R08", "the sides bind nothing that is read later")
    arguments = sorted((names.read | {*(needed or ())}) & place.function.hidden & bound_before)
    bodies = [[replaced(each, _in_a_tuple) for each in block] for block in (then, orelse)]
    return Branch(arguments, bodies[0], bodies[1], needed or ())


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


def _in_a_tuple(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, ast.Return):
        return None
    value = node.value or ast.copy_location(ast.Constant(None), node)
    return ast.copy_location(ast.Return(display([value], value)), node)
