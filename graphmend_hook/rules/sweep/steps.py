"""Steps of loops that do nothing for no rows, as far as their source tells: what [Sweep] looks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ...source.names import NamesIn
from ...source.scopes import Place
from ...source.templates import name
from ..base import Declined
from .codes import READ_AFTER_STEP, STEP_CONTAINS_MORE

ADDING = "index_add_"
_SOME_HIT = (r"(\w+)\.any\(\)(?:\.item\(\))?", r"(\w+)\.sum\(\)(?:\.item\(\))? (?:>|!=) 0")
_NO_HIT = (r"not (\w+)\.any\(\)(?:\.item\(\))?", r"(\w+)\.sum\(\)(?:\.item\(\))? == 0")


def adds(statement: ast.stmt) -> bool:
    """Is it ``name.index_add_(dim, index, source)``?"""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), method), [_, _, _], [])):
            return method == ADDING
    return False


def assigns_at(statement: ast.stmt) -> bool:
    """Is it ``name[index] = value`` or ``name[index] += value``, of an index that is a name?"""
    match statement:
        case ast.Assign(targets=[ast.Subscript(ast.Name(), ast.Name())]) | ast.AugAssign(
            ast.Subscript(ast.Name(), ast.Name()), ast.Add()
        ):
            return True
    return False


def ends_in_adding(step: Sequence[ast.stmt]) -> bool:
    return bool(step) and (adds(step[-1]) or assigns_at(step[-1]))


def emptiness(statement: ast.If) -> tuple[bool, ast.expr | None]:
    """Is the step skipped by the test, rather than inside; and the index that the test asks about."""
    compared = statement.test
    if statement.orelse or not isinstance(compared, ast.Compare) or len(compared.ops) != 1:
        return False, None
    skips = only_continues(statement)
    right = compared.comparators[0]
    if not isinstance(compared.ops[0], ast.Eq if skips else (ast.Gt, ast.NotEq)):
        return skips, None
    if not isinstance(right, ast.Constant) or right.value != 0 or isinstance(right.value, bool):
        return skips, None
    return skips, _counted(compared.left)


def lack_of_hits(statement: ast.If) -> tuple[bool, ast.expr | None]:
    """Is the step skipped by the test, rather than inside; and the mask whose hits the test asks for."""
    skips = only_continues(statement)
    forms = _NO_HIT if skips else _SOME_HIT
    text = "" if statement.orelse else ast.unparse(statement.test)
    found = next(filter(None, (re.fullmatch(form, text) for form in forms)), None)
    return skips, name(found[1], statement.test) if found else None


def only_indexes(mask: str, step: Sequence[ast.stmt]) -> bool:
    """Does the step select rows by the mask, as an index or as the first of several, and read it for nothing else?"""
    if any(map(adds, step[:-1])) or mask in NamesIn.code(*step).bound:
        return False
    parts = [part for statement in step for part in ast.walk(statement)]
    items = [part for part in parts if isinstance(part, ast.Subscript)]
    indexed = [
        (item, item.slice.elts[0] if isinstance(item.slice, ast.Tuple) and item.slice.elts else item.slice)
        for item in items
    ]
    selecting = [item for item, first in indexed if isinstance(first, ast.Name) and first.id == mask]
    if not any(isinstance(item.ctx, ast.Load) for item in selecting):
        return False  # what is written does not rest on the rows: a branch
    return len(selecting) == sum(isinstance(part, ast.Name) and part.id == mask for part in parts)


def only_continues(statement: ast.If) -> bool:
    return len(statement.body) == 1 and isinstance(statement.body[0], ast.Continue) and not statement.orelse


def _counted(node: ast.expr) -> ast.expr | None:
    """The name `x` in ``x.shape[0]``, ``x.size(0)``, ``x.numel()`` and ``len(x)``."""
    text = ast.unparse(node)
    for form in (r"(\w+)\.shape\[0\]", r"(\w+)\.size\(0\)", r"(\w+)\.numel\(\)", r"len\((\w+)\)"):
        match = re.fullmatch(form, text)
        if match:
            return name(match[1], node)
    return None


def check(step: Sequence[ast.stmt], place: Place) -> None:
    """Raise Declined unless the step assigns names of its own, and adds; `place` is that of one of its statements."""
    assigned: set[str] = set()
    for statement in step:
        is_end = statement is step[-1] and assigns_at(statement)
        if not (is_end or adds(statement) or _only_assigns(statement) or _skips(statement)):
            raise Declined(STEP_CONTAINS_MORE, f"the step contains `{ast.unparse(statement).splitlines()[0]}`")
        assigned |= NamesIn.code(statement).bound
    for statement in (step[-1], *place.inside[-1:]):
        read = assigned & place.function.flow.needed_after(statement)
        if read:
            raise Declined(READ_AFTER_STEP, f"`{min(read)}`, which the step assigns, is read after it")


def _only_assigns(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_only_assigns, (*statement.body, *statement.orelse)))
    return isinstance(statement, ast.Assign) and all(map(_is_name, statement.targets))


def _skips(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and all(emptiness(statement))


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)
