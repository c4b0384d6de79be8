"""Makes a program that fails smaller, by leaving out what the failure does not need."""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from .checking import EAGER, Failure, Load, check, import_mended
from .grammar import Program

TRIES = 150
REDUCED = 3  # failures of one run that are reduced; the others are only named


def smaller(program: Program) -> Iterator[Program]:
    """Programs that lack a statement, have an expression's operand for the expression, or plainer arguments."""
    tree = ast.parse(program.source)
    for index, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt) and node is not tree:
                for place, statement in enumerate(value):
                    for instead in ([], getattr(statement, "body", None), getattr(statement, "orelse", None)):
                        if instead is not None and not isinstance(instead, ast.expr):
                            block = [*value[:place], *instead, *value[place + 1 :]]
                            yield replace(program, source=_with(tree, index, name, block or [ast.Pass()]))
            elif isinstance(value, ast.BoolOp | ast.IfExp | ast.BinOp | ast.UnaryOp | ast.Call):
                for operand in ast.iter_child_nodes(value):
                    if isinstance(operand, ast.expr):
                        yield replace(program, source=_with(tree, index, name, operand))
    for option in fields(Program):
        if option.name not in ("source", "seed") and getattr(program, option.name) != option.default:
            yield replace(program, **{option.name: option.default})


def _with(tree: ast.Module, index: int, name: str, value: Any) -> str:
    """The text of `tree` with another `value` in field `name` of its node number `index`."""
    changed = copy.deepcopy(tree)
    setattr(list(ast.walk(changed))[index], name, value)
    return ast.unparse(changed) + "\n"


def reduced(failure: Failure, directory: Path, load: Load = import_mended, backend: str = EAGER) -> Failure:
    """The same failure of a smaller program, or of the one that could be had with `TRIES` attempts."""
    tried = {failure.program}
    place = since_success = 0
    candidates = list(smaller(failure.program))
    while since_success < len(candidates) and len(tried) < TRIES:
        candidate = candidates[place % len(candidates)]
        place += 1
        since_success += 1
        if candidate in tried:
            continue
        tried.add(candidate)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = check([candidate], directory, load, backend)
        except Exception:  # no program any more
            continue
        for other in found:
            if other.arm == failure.arm and (other.names & failure.names or not failure.names):
                failure, candidates = other, list(smaller(candidate))
                place, since_success = place - 1, 0  # the next statement has taken the place of this one
                break
    return failure


def report(failures: list[Failure], directory: Path, backend: str = EAGER) -> str:
    shown = [str(reduced(failure, directory, backend=backend)) for failure in failures[:REDUCED]]
    others = [f"seed {failure.program.seed}: {failure.arm}: {sorted(failure.names)}" for failure in failures[REDUCED:]]
    return "\n\n".join([f"{len(failures)} failures", *shown, *others])
