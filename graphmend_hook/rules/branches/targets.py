"""What the statements of a side write to, beside names: attributes, items, tensors under a mask."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ...analysis.names import walk
from ..declined import Declined

Slot = ast.Attribute | ast.Subscript  # what a side may assign to, beside names


def slots_of(*blocks: Sequence[ast.stmt]) -> list[Slot]:
    """The attributes that the blocks assign to, each once, in order."""
    found: dict[str, Slot] = {}
    for block in blocks:
        for statement in block:
            for node in walk(statement):
                if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                    if statement is block[-1] and is_masked_write(statement):
                        continue
                    if not _is_slot(node):
                        raise Declined("R08", f"a side writes to `{ast.unparse(node)}`")
                    found.setdefault(ast.unparse(node), node)
    ends = [re.sub(r"^\w+", "", text) for text in found]
    if len(ends) > len(set(ends)):
        raise Declined("R04", "a side writes to the same attribute or item through two names")
    return list(found.values())


def written_in_place(block: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that the statements write by augmented assignment only, and read nowhere else."""
    nodes = [node for statement in block for node in walk(statement)]
    augmented = [node for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)]
    spellings = {node.target.id for node in augmented if isinstance(node.target, ast.Name)}
    targets = {id(node.target) for node in augmented}
    others = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in targets}
    return frozenset(spellings - others)


def is_masked_write(statement: ast.stmt) -> bool:
    """Is it ``name[name] = value``?"""
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return False
    target = statement.targets[0]
    return (
        isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and isinstance(target.slice, ast.Name)
    )


def _is_slot(node: Slot) -> bool:
    """Is it ``name.attribute``, or an item with a constant key of a name or of such an attribute?"""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)
    owner = node.value.value if isinstance(node.value, ast.Attribute) else node.value
    return isinstance(node.slice, ast.Constant) and isinstance(owner, ast.Name)
