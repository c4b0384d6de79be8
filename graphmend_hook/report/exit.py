"""What is said when the process ends: the report, and strict mode's "nothing was mended"."""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys

from ..config import Settings
from ..diagnostics import notice
from .ledger import Status, ledger
from .text import as_json, as_text

log = logging.getLogger("graphmend_hook")


def report_at_exit(settings: Settings) -> None:
    """Write the report that `settings.report` asks for when this process ends (not in a forked child of it)."""
    if settings.report:
        atexit.register(_write, settings.report, os.getpid())
    if settings.strict:
        atexit.register(_say_if_nothing_was_mended, settings.modules, os.getpid())


def nothing_was_mended() -> bool:
    return not ledger.with_status(Status.MENDED)


def _write(target: str, pid: int) -> None:
    if os.getpid() != pid:
        return
    if target == "-":
        print(as_text(ledger), file=sys.stderr)
        return
    path = target.replace("{pid}", str(pid))
    try:
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(as_json(ledger), stream, indent=1)
    except OSError as error:
        print(f"graphmend_hook: GRAPHMEND_REPORT: cannot write {path}: {error.strerror}", file=sys.stderr)


def _say_if_nothing_was_mended(modules: tuple[str, ...], pid: int) -> None:
    if os.getpid() == pid and nothing_was_mended():
        print(notice("GM004", modules=",".join(modules)), file=sys.stderr)
