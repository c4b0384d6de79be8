"""What the statements of a side write to, beside names: attributes, tensors under a mask."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...analysis.names import walk
from ..declined import Declined


def slots_of(*blocks: Sequence[ast.stmt]) -> list[ast.Attribute]:
    """The attributes of names that the blocks assign to, each once, in order."""
    found: dict[str, ast.Attribute] = {}
    for statement in (each for block in blocks for each in block):
        for node in walk(statement):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                    raise Declined("R08", f"a side writes to `{ast.unparse(node)}`")
                found.setdefault(ast.unparse(node), node)
    if len(found) > len({slot.attr for slot in found.values()}):
        raise Declined("R04", "a side writes to the same attribute through two names")
    return list(found.values())


def masked_write_apart(block: Sequence[ast.stmt]) -> tuple[Sequence[ast.stmt], ast.Assign | None]:
    """The block without ``name[name] = value`` at its end, and that statement."""
    match block:
        case [*rest, ast.Assign(targets=[ast.Subscript(value=ast.Name(), slice=ast.Name())]) as write]:
            return rest, write
    return block, None
