"""What is said when the process ends: the report, and strict mode's "nothing was mended"."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from functools import cache
from types import FrameType

from ...diagnostics import notice
from ...settings.config import Settings
from . import status
from .files import claim, fill, write
from .ledger import Status, as_json, ledger


def report_at_exit(settings: Settings, is_child: bool) -> None:
    """Write the report that `settings.report` asks for when this process ends (not in a forked child of it).

    is_child: has the process its settings from another one?  Strict mode is about that one's status.
    """
    if settings.report == "-":
        _at_exit(_show, "", os.getpid())
    elif settings.report:
        target = os.path.abspath(settings.report)
        claim(target)
        _at_exit(_save, target, os.getpid())
    if settings.strict:
        status.watch()
        where = "child" if is_child else "site" if _is_starting() else "program"
        _at_exit(_fail_if_nothing_was_mended, f"{where} {','.join(settings.modules)}", os.getpid())


def _is_starting() -> bool:
    """Is python still starting (a sitecustomize)?  Then this process may be any that the environment is handed to."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != "site":
        frame = frame.f_back
    return frame is not None


def nothing_was_mended() -> bool:
    return not ledger.with_status(Status.MENDED)


def failed_strictly(settings: Settings) -> bool:
    """Has a program failed that did nothing wrong, because `settings.strict` wants something to be mended?"""
    return settings.strict and not settings.disable and nothing_was_mended()


@cache
def _at_exit(function: Callable[[str], None], argument: str, pid: int) -> None:
    """Register the call once, however often hooks are installed and removed."""
    status.at_exit(lambda: function(argument))


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


def _fail_if_nothing_was_mended(given: str) -> None:
    """given: "child", "site" or "program", by where the hook was installed, and the modules to mend."""
    where, _, modules = given.partition(" ")
    if nothing_was_mended():
        say(notice("GM004", modules=modules) + "\n")
        is_job = "torch" in sys.modules and "torch.distributed.run" not in sys.modules  # the launcher mends nothing
        if where == "program" or (where == "site" and is_job):
            status.fail_at_end()


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
