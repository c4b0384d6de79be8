"""What a branch does in both sides or may do ahead of time: the same call with other arguments, a lazy attribute.

``if not hasattr(self, "x"): self.x = make(...)`` at the start of a side creates a value that every later call finds;
while tracing it is created whichever side is taken, provided that making it has no other effect
(`traced_sides.harmless`).  A call that ends both sides, on the same receiver, is made once, with the selected
arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...analysis.names import NamesIn, unpacks, walk
from ...templates import OWN, Template, constant, name, replaced
from ..base import Declined
from ..known_calls import LOGGER_METHODS
from .lower import Lowering

_LAZY = Template("if GM.watch():\n    STATEMENT\n    GM.harmless(OWNER, ATTRIBUTE)")


@dataclass
class Hoisted:
    """Statements around a branch.

    needed: names of ours that stand for the arguments of the shared call; the branch binds them.
    """

    before: list[ast.stmt] = field(default_factory=list)
    needed: frozenset[str] = frozenset()
    after: list[ast.stmt] = field(default_factory=list)


def split(statement: ast.If, lowering: Lowering) -> tuple[list[ast.stmt], list[ast.stmt], Hoisted]:
    """The sides of `statement` without what can be done before or after them."""
    hoisted = Hoisted()
    sides = [_without_lazy(side, statement, lowering, hoisted) for side in (statement.body, statement.orelse)]
    left, right = map(_last_call, sides)
    if left and right and _shape(left) == _shape(right):
        _share(sides, left, right, hoisted)
    return sides[0], sides[1], hoisted


def _without_lazy(block: list[ast.stmt], at: ast.If, lowering: Lowering, hoisted: Hoisted) -> list[ast.stmt]:
    rest, place = [*block], lowering.place
    while rest and (found := _lazy_attribute(rest[0])):
        lazy, (owner, attribute) = rest.pop(0), found
        if _is_seen_elsewhere(attribute, at, lowering.scope.tree):
            raise Declined("R04", f"`{attribute}`, created when it is first needed, is looked at elsewhere")
        flow, names = place.function.flow, NamesIn.code(lazy)
        if names.bound & (flow.needed_after(at) | NamesIn.code(*rest).read):
            raise Declined("R08", "what creates a lazy attribute binds a name that is read later")
        if (names.read & place.function.names.bound) - flow.bound_before(at):
            raise Declined("R03", "what creates a lazy attribute reads a name that may be unbound")
        created = replaced(lazy, _unused)  # beside the attribute, nothing is bound
        hoisted.before += _LAZY.fill(at, STATEMENT=created, OWNER=name(owner, at), ATTRIBUTE=constant(attribute, at))
    return rest


def _lazy_attribute(statement: ast.stmt) -> tuple[str, str] | None:
    """``("obj", "x")``, if the statement is ``if not hasattr(obj, "x"): obj.x[, ...] = call(...)``."""
    match statement:
        case ast.If(
            test=ast.UnaryOp(
                op=ast.Not(),
                operand=ast.Call(func=ast.Name("hasattr"), args=[ast.Name(owner), ast.Constant(str(attribute))]),
            ),
            body=[ast.Assign(targets=targets, value=value)],
            orelse=[],
        ) if not isinstance(value, ast.Constant):
            stored = [ast.unparse(node) for node in walk(*targets) if isinstance(node, ast.Attribute)]
            is_private = attribute.startswith("__")  # `hasattr` asks for that name, the assignment for the class's
            return (owner, attribute) if stored == [f"{owner}.{attribute}"] and not is_private else None
    return None


def _unused(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return name(f"{OWN}unused", node, ast.Store())
    return None


def _is_seen_elsewhere(attribute: str, at: ast.If, tree: ast.Module) -> bool:
    """Does the module name the attribute outside of the branch that creates it?"""

    def count(root: ast.AST) -> int:
        return sum(
            (isinstance(node, ast.Attribute) and node.attr == attribute)
            or (isinstance(node, ast.Constant) and node.value == attribute)
            for node in walk(root)
        )

    return count(tree) > count(at)


def _last_call(block: Sequence[ast.stmt]) -> ast.Call | None:
    last = block[-1] if block else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and isinstance(last.value.func, ast.Attribute):
        method = last.value.func
        rebound = NamesIn.code(*block[:-1]).bound & NamesIn.code(method).read
        return None if method.attr in LOGGER_METHODS or rebound or unpacks(last.value) else last.value
    return None


def _shape(call: ast.Call) -> tuple[object, ...]:
    return ast.dump(call.func), len(call.args), [keyword.arg for keyword in call.keywords]


def _share(sides: list[list[ast.stmt]], left: ast.Call, right: ast.Call, hoisted: Hoisted) -> None:
    """Replace the call at the end of both sides by assignments of its differing arguments to names of ours."""
    values = [[*call.args, *(keyword.value for keyword in call.keywords)] for call in (left, right)]
    shared: dict[ast.AST, ast.AST] = {}
    ends: list[list[ast.stmt]] = [[], []]
    for index, pair in enumerate(zip(*values, strict=True)):
        if all(isinstance(value, ast.Constant) for value in pair) and ast.dump(pair[0]) == ast.dump(pair[1]):
            continue
        spelling = f"{OWN}argument{index}"
        hoisted.needed |= {spelling}
        shared[pair[0]] = name(spelling, pair[0])
        for end, value in zip(ends, pair, strict=True):
            end.append(ast.copy_location(ast.Assign([name(spelling, value, ast.Store())], value), value))
    for side, end in zip(sides, ends, strict=True):
        side[-1:] = end
    hoisted.after.append(ast.copy_location(ast.Expr(replaced(left, shared.get)), left))
