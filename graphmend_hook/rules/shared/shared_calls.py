"""What a branch does in both sides or may do ahead of time: the same call with other arguments, a lazy attribute.

``if not hasattr(self, "x"): self.x = make(...)`` at the start of a side creates a value that every later call finds;
while tracing the value is made whichever side is taken, provided that making it cannot fail and has no effect
(`traced_sides.harmless`), and it is stored at the end of the graph if its side was taken.  Where both sides end in a
call of one method of `torch.nn.Module`, it is called once, with the selected arguments; another could look at the line
that calls it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...source.names import NamesIn, unpacks, walk
from ...source.templates import OWN, Template, constant, name, replaced
from ..base import Declined
from ..defer.known_calls import MODULE_METHODS
from .codes import MAY_BE_UNBOUND, OTHER_NAME, OTHER_STATEMENT
from .lower import Lowering

_LAZY = Template(
    """
VALUE = None
if hasattr(OWNER, ATTRIBUTE):
    VALUE = SLOT
elif GM.watch(OWNER, ATTRIBUTE):
    STATEMENT
    GM.harmless()
"""
)


@dataclass(frozen=True)
class Lazy:
    """An attribute ``owner.attribute`` that a side creates; value: the name of ours that stands for it."""

    owner: str
    attribute: str
    value: str


@dataclass
class Hoisted:
    """What stands around a branch.

    lazy: the attributes that each side creates; before: statements that make what they will be.
    needed: names of ours that stand for the arguments of the shared call; the branch binds them.
    shared: the object and the method of that call; after: the call.
    """

    lazy: tuple[list[Lazy], list[Lazy]] = field(default_factory=lambda: ([], []))
    before: list[ast.stmt] = field(default_factory=list)
    needed: frozenset[str] = frozenset()
    shared: ast.Attribute | None = None
    after: list[ast.stmt] = field(default_factory=list)


def split(statement: ast.If, lowering: Lowering) -> tuple[list[ast.stmt], list[ast.stmt], Hoisted]:
    """The sides of `statement` without what can be done before or after them."""
    hoisted = Hoisted()
    blocks = zip((statement.body, statement.orelse), hoisted.lazy, strict=True)
    sides = [_without_lazy(block, statement, lowering, hoisted, found) for block, found in blocks]
    left, right = map(_last_call, sides)
    if left and right and _shape(left) == _shape(right):
        _share(sides, left, right, hoisted)
    return sides[0], sides[1], hoisted


def _without_lazy(
    block: list[ast.stmt], at: ast.If, lowering: Lowering, hoisted: Hoisted, found: list[Lazy]
) -> list[ast.stmt]:
    rest, place = [*block], lowering.place
    while rest and (slot := _lazy_attribute(rest[0])):
        lazy, (owner, attribute) = rest.pop(0), slot
        assert isinstance(lazy, ast.If)
        if _is_seen_elsewhere(attribute, at, lowering.scope.tree):
            raise Declined(OTHER_NAME, f"`{attribute}`, created when it is first needed, is looked at elsewhere")
        flow, names = place.function.flow, NamesIn.code(lazy)
        if names.bound & (flow.needed_after(at) | NamesIn.code(*rest).read):
            raise Declined(OTHER_STATEMENT, "what creates a lazy attribute binds a name that is read later")
        if (names.read & place.function.names.bound) - flow.bound_before(at):
            raise Declined(MAY_BE_UNBOUND, "what creates a lazy attribute reads a name that may be unbound")
        made = Lazy(owner, attribute, f"{OWN}lazy{sum(map(len, hoisted.lazy))}")
        hoisted.before += _LAZY.fill(
            at,
            VALUE=made.value,
            OWNER=name(owner, at),
            ATTRIBUTE=constant(attribute, at),
            SLOT=ast.copy_location(ast.Attribute(name(owner, at), attribute, ast.Load()), at),
            STATEMENT=replaced(lazy.body[0], functools.partial(_bound_instead, made.value)),
        )
        found.append(made)
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


def _bound_instead(value: str, node: ast.AST) -> ast.AST | None:
    """What is bound where the attribute, or beside it a name, was."""
    if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
        return name(value if isinstance(node, ast.Attribute) else f"{OWN}unused", node, ast.Store())
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
        is_known = isinstance(method.value, ast.Name) and method.attr in MODULE_METHODS
        return last.value if is_known and not rebound and not unpacks(last.value) else None
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
    assert isinstance(left.func, ast.Attribute)
    hoisted.shared = left.func
    hoisted.after.append(ast.copy_location(ast.Expr(replaced(left, shared.get)), left))
