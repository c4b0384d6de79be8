"""Lets this process end with status 1 where strict mode wants something to be mended, whoever runs the program."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

_left = False  # to a runner of ours, which gives the status itself
_given: list[Any] = []  # what the program has given `sys.exit` last


def leave_to_runner() -> None:
    global _left
    _left = True


def watch() -> None:
    """Remember from now on what the program gives `sys.exit`: by the time it ends, nothing else knows."""
    original = sys.exit
    if _left or getattr(original, "__wrapped__", None) is not None:
        return

    @wraps(original)
    def exit(*given: Any) -> Any:
        _given[:] = given or (None,)
        original(*given)

    sys.exit = exit


def _fails_by_itself() -> bool:
    if getattr(sys, "last_type", None) is not None:
        return True
    if _given:
        return _given[0] is not None and _given[0] != 0
    # Python takes the name of a script away when that has ended, but not after SystemExit.
    main = sys.modules.get("__main__")
    return hasattr(main, "__file__") and getattr(main, "__spec__", None) is None


def at_exit(function: Callable[[], object]) -> None:
    """Call `function` when this process ends, not in a forked child of it; the process still dies of an interrupt."""
    pid = os.getpid()

    def call() -> None:
        if os.getpid() != pid:
            return
        function()
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            # Python ends by the signal if the last text that it ran was interrupted; an import may have run others.
            with contextlib.suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")

    atexit.register(call)


def fail_at_end() -> None:
    """Let the process, which is ending, end with status 1; one that an uncaught exception ends does so anyway.

    Not a worker of `multiprocessing`, which does a part of the work, nor a program that fails by itself: it keeps its
    status.  A ``raise SystemExit`` of a script is left alone, since nothing can tell its status; under -m and -c it
    ends with 1.

    Nothing in Python can change the status by then, short of `os._exit`, which would lose what is not flushed.  The C
    library can: a function that is registered with it runs after Python is gone, and there ``exit(1)`` goes on with
    what else is registered.  That is so in glibc; elsewhere the status stays what it is.
    """
    workers = sys.modules.get("multiprocessing.process")
    if _left or _fails_by_itself() or (workers and workers.parent_process() is not None):
        return
    with contextlib.suppress(Exception):
        if (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            import ctypes

            library = ctypes.CDLL(None)
            library.__cxa_atexit(library.exit, ctypes.c_void_p(1), None)
