"""What is said when the process ends: the report, and strict mode's "nothing was mended"."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
from collections.abc import Callable
from functools import cache

from ..config import Settings
from ..diagnostics import notice
from .files import claim, fill, write
from .ledger import Status, as_json, ledger


def report_at_exit(settings: Settings) -> None:
    """Write the report that `settings.report` asks for when this process ends (not in a forked child of it)."""
    if settings.report == "-":
        _at_exit(_show, "", os.getpid())
    elif settings.report:
        target = os.path.abspath(settings.report)
        claim(target)
        _at_exit(_save, target, os.getpid())
    if settings.strict:
        _at_exit(_say_if_nothing_was_mended, ",".join(settings.modules), os.getpid())


def nothing_was_mended() -> bool:
    return not ledger.with_status(Status.MENDED)


def failed_strictly(settings: Settings) -> bool:
    """Has a program failed that did nothing wrong, because `settings.strict` wants something to be mended?"""
    return settings.strict and not settings.disable and nothing_was_mended()


@cache
def _at_exit(function: Callable[[str], None], argument: str, pid: int) -> None:
    """Register the call once, however often hooks are installed and removed; a forked child does not inherit it."""
    atexit.register(lambda: function(argument) if os.getpid() == pid else None)


def _show(_argument: str) -> None:
    if sys.stderr is None:
        return
    try:
        from .text import as_text_for

        text = as_text_for(sys.stderr, as_json(ledger))
    except Exception as error:  # a module of the program's own may have the name of one of rich's
        text = f"graphmend_hook: the report cannot be shown: {error!r}\n"
    say(text)


def _save(target: str) -> None:
    try:
        write(as_json(ledger), target, ledger.started)
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) else repr(error)
        say(f"graphmend_hook: GRAPHMEND_REPORT: cannot write {fill(target)}: {why}\n")


def _say_if_nothing_was_mended(modules: str) -> None:
    if nothing_was_mended():
        say(notice("GM004", modules=modules) + "\n")


def say(text: str) -> None:
    """Write to stderr, if there is one that takes it: a program's end must not fail because nobody can be told.

    Not through `sys.stderr` itself: what that cannot write stays in it, and makes python end with status 120.
    """
    stream = sys.stderr
    with contextlib.suppress(Exception):
        try:
            stream.flush()
            descriptor = stream.fileno()
        except (AttributeError, io.UnsupportedOperation):  # a notebook's, a test's
            stream.write(text)
            return
        with open(descriptor, "w", encoding=stream.encoding, errors=stream.errors, closefd=False) as own:
            own.write(text)
