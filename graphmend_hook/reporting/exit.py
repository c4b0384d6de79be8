"""What is said when the process ends: the report, and strict mode's "nothing was mended"."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable

from ..config import Settings
from ..diagnostics import notice
from .ledger import Status, ledger
from .text import as_json, as_text

_registered: set[tuple[str, str, int]] = set()


def report_at_exit(settings: Settings) -> None:
    """Write the report that `settings.report` asks for when this process ends (not in a forked child of it)."""
    target = settings.report if settings.report in {"", "-"} else os.path.abspath(settings.report)
    if target:
        _at_exit(_write, target)
    if settings.strict:
        _at_exit(_say_if_nothing_was_mended, ",".join(settings.modules))


def nothing_was_mended() -> bool:
    return not ledger.with_status(Status.MENDED)


def _at_exit(function: Callable[[str], None], argument: str) -> None:
    """Register the call once, however often hooks are installed and removed; a forked child does not inherit it."""
    pid = os.getpid()
    key = (function.__name__, argument, pid)
    if key not in _registered:
        _registered.add(key)
        atexit.register(lambda: function(argument) if os.getpid() == pid else None)


def _write(target: str) -> None:
    if target == "-":
        print(as_text(ledger), file=sys.stderr)
        return
    path = target.replace("{pid}", str(os.getpid()))
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(as_json(ledger), indent=1))
    except OSError as error:
        print(f"graphmend_hook: GRAPHMEND_REPORT: cannot write {path}: {error.strerror}", file=sys.stderr)


def _say_if_nothing_was_mended(modules: str) -> None:
    if nothing_was_mended():
        print(notice("GM004", modules=modules), file=sys.stderr)
