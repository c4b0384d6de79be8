"""What the tool has to say about a line of a program: the site there, what was seen while tracing it, or its module."""

from __future__ import annotations

import ast
import linecache

from ..diagnostics import Outcome
from ..runtime import refusals
from .ledger import Ledger, Status


def verdict(ledger: Ledger, path: str, line: int) -> str:
    """One sentence about the statement that line `line` (1-based) of the file `path` belongs to."""
    start = _first_line(path, line)
    record = next((record for record in ledger.records if record.path == path), None)
    if record is None:
        return "not mended: no hook was asked to mend this file"
    if record.status in (Status.NOT_ELIGIBLE, Status.TOO_EARLY, Status.FAILED):
        return f"not mended: {record.name}: {record.status.value}{record.why and ': '}{record.why}"
    for code, traced_path, traced_line, _ in refusals.seen:
        if traced_path == path and start <= traced_line <= line:
            return f"left in place while tracing, {code}: {refusals.REFUSALS[code]}"
    for site in record.sites:
        if site.line != start:
            continue
        if site.outcome is Outcome.DECLINED:
            return f"declined, {site.code}: {site.reason}"
        return f"mended by {site.rule}, but Dynamo breaks here all the same"
    return "not mended: no rule is for this statement"


def _first_line(path: str, line: int) -> int:
    """Where the innermost statement begins that holds `line`; `line` itself for a text that cannot be parsed."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return line
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return max((node.lineno for node in statements if node.lineno <= line <= (node.end_lineno or 0)), default=line)
