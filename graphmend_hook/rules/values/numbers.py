"""``n = x.item()`` where nothing but guards reads `n`: while tracing the tensor is carried instead of its value.

The guards compare it as a tensor of the dtype that holds what Python's numbers hold; a message that shows it gets the
number.  Where a guard cannot be mended, the number is read there, and the graph breaks as it did at the assignment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...analysis.names import walk
from ...analysis.scopes import Function, Place
from ...templates import Template
from ..operators import COMPARISONS

_CARRIED = Template("if GM.compiling():\n    STORED = GM.carried(TENSOR)\nelse:\n    ORIGINAL")


@dataclass
class NumberCandidate:
    """The assignment of a number that is carried as a tensor."""

    statement: ast.Assign
    tensor: ast.expr

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        return _CARRIED.fill(
            self.statement, STORED=self.statement.targets[0], TENSOR=self.tensor, ORIGINAL=self.statement
        )


def read_number(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name and the tensor of ``name = tensor.item()``, None for any other statement."""
    if not (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Call)
    ):
        return None
    target, call = statement.targets[0], statement.value
    if not (isinstance(target, ast.Name) and isinstance(call.func, ast.Attribute) and call.func.attr == "item"):
        return None
    return None if call.args or call.keywords else (target.id, call.func.value)


def carried_names(function: Function) -> frozenset[str]:
    """The names of `function` that are bound once, to a number read from a tensor."""
    if "item" not in function.names.attributes:
        return frozenset()
    found = [read for node in walk(function.node) if isinstance(node, ast.stmt) and (read := read_number(node))]
    stored = [
        node.id for node in walk(function.node) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    arguments = {node.arg for node in walk(function.node) if isinstance(node, ast.arg)}
    return frozenset(name for name, _ in found if stored.count(name) == 1 and name not in arguments)


def readers(name: str, place: Place, places: list[Place]) -> list[Place] | None:
    """The guards that compare `name`, or show it; None if something else reads it, too."""
    guards = [
        other
        for other in places
        if other.function is place.function and isinstance(other.statement, (ast.If, ast.Assert))
    ]
    loads = _loads(name, place.function.node)
    inside: dict[int, Place] = {}
    for guard in guards:
        for part in _compared_or_shown(guard.statement):
            for load in _loads(name, part):
                inside.setdefault(load, guard)  # places come in the order of the source: the outermost first
    if not loads or loads != set(inside):
        return None
    return list({id(guard): guard for guard in inside.values()}.values())


def _compared_or_shown(statement: ast.stmt) -> Iterator[ast.AST]:
    """The names that a guard compares, and what it makes its exception of."""
    for node in walk(statement):
        if isinstance(node, ast.Raise):
            yield node
        elif isinstance(node, (ast.If, ast.Assert)):
            yield from _compared(node.test)
            if isinstance(node, ast.Assert) and node.msg is not None:
                yield node.msg


def _compared(test: ast.expr) -> Iterator[ast.Name]:
    """A number that is carried as a tensor is an operand of a comparison of two, and nothing is calculated of it."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _compared(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _compared(operand)
        case ast.Compare(left=left, ops=[operation], comparators=[right]) if type(operation) in COMPARISONS:
            yield from (operand for operand in (left, right) if isinstance(operand, ast.Name))


def _loads(name: str, root: ast.AST) -> set[int]:
    return {
        id(node)
        for node in walk(root)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    }
