"""Covered modules that no hook of ours was asked about: another hook has loaded them, or nobody's import did."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType

from ..diagnostics import say_failed
from ..product.report.ledger import ModuleRecord, Status, ledger
from .allowlist import Allowlist
from .looking import is_module, kind_of, namespace_of, spec_of

PROGRAM = (
    "it is the program, which python itself has started; start it by python -m graphmend_hook, or mend what it defines "
    "by graphmend_hook.mend"
)
FIRST = (
    ", which was asked before graphmend_hook; install graphmend_hook last, or mend it by graphmend_hook.mend(module)"
)
PAST = "loaded past the import system, so that no hook was asked; mend it by graphmend_hook.mend(module)"


def note_unreached(allowlists: Iterable[Allowlist]) -> None:
    """Put the modules into the ledger that are imported and covered, and of which it knows nothing."""
    allowlists = list(allowlists)
    if not allowlists:
        return
    try:
        names = {record.name for record in ledger.records}
        files = {record.path for record in ledger.records}
        for name, module in list(sys.modules.items()):
            for own_name, file, why in _unless_known(name, module, names, files):
                if any(each.covers(own_name, file) and not each.passes_over(own_name) for each in allowlists):
                    ledger.add(ModuleRecord(name, file, Status.NOT_ELIGIBLE, why=why))
    except Exception as error:
        say_failed("the report", "looking for modules that were not reached", error)


def _unless_known(name: str, module: ModuleType, names: set[str], files: set[str]) -> Iterator[tuple[str, str, str]]:
    """The module's own name, its file, and how it came here; nothing where it has no file, or the ledger knows it."""
    spec = spec_of(module)
    if spec is None:
        # A script has no spec, and when it has ended no `__file__`.
        loader = namespace_of(module).get("__loader__") if is_module(module) else None
        if name == "__main__" and type(loader) is SourceFileLoader and name not in names:
            yield name, os.path.abspath(loader.path), PROGRAM
    elif spec.has_location and spec.origin and not {spec.origin} & files and name not in names:
        is_plain = type(spec.loader) is SourceFileLoader
        yield spec.name, spec.origin, PAST if is_plain else f"loaded by {kind_of(spec.loader)}{FIRST}"
