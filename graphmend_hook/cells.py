"""Text that runs among names which it does not bind itself: the cell of a notebook, or what was given to `exec`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from .diagnostics import Site
from .rewrite import Rewritten, compiled, rewrite_tree, triggered
from .rules.base import Rule
from .source.names import NamesIn
from .source.optout import first_line


def triggered_in_cell(rules: Sequence[Rule], text: bytes) -> list[Rule]:
    """As `rewrite.triggered`, but a rule that looks for torch looks at every cell: another one has imported it."""
    return triggered(rules, text + b"\n# torch")


def rewrite_cell(tree: ast.Module, text: bytes, rules: list[Rule], names: Mapping[str, Any]) -> tuple[Site, ...]:
    """Apply `rules` to `tree`, parsed from `text`, in place; its statements stay the same in number and order.

    names: what the names mean that the text reads and does not bind.
    """
    statements = list(tree.body)
    if statements:
        tree.body[:0] = _known_names(tree, names)
    changes = rewrite_tree(tree, text, rules)
    tree.body[:] = statements  # without the import of the runtime: a `from __future__` has to come first
    return tuple(change.site for change in changes)


def rewritten_cell(
    text: bytes, filename: str, rules: Sequence[Rule], names: Mapping[str, Any], flags: int
) -> Rewritten:
    """What `rewrite` gives of a module, of a text that runs among `names`.  Raises SyntaxError as `compile` does.

    flags: as `compile` takes them.
    """
    tree = ast.parse(text, filename)
    return compiled(tree, filename, rewrite_cell(tree, text, triggered_in_cell(rules, text), names), flags)


def _known_names(tree: ast.Module, namespace: Mapping[str, Any]) -> list[ast.stmt]:
    """Statements that tell the rules what others have bound the names to that `tree` reads.

    A module is an import and a class a definition; any other name is a variable, which may change at any time.
    """
    names = sorted(NamesIn.code(tree).read & namespace.keys() - {"__name__"})
    statements = ast.parse("\n".join(_binding(name, namespace[name]) for name in names)).body
    for statement in statements:  # an opt-out comment at the head of the cell holds for these too
        statement.lineno = statement.end_lineno = first_line(tree.body[0])
    return statements


def _binding(name: str, value: object) -> str:
    if isinstance(value, ModuleType) and all(part.isidentifier() for part in value.__name__.split(".")):
        return f"import {value.__name__} as {name}"
    if isinstance(value, type):
        return f"class {name}: pass"
    return f"{name} = {name} = None"  # bound twice
