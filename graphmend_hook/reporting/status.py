"""Lets this process end with status 1 where strict mode wants something to be mended, whoever runs the program."""

from __future__ import annotations

import contextlib
import os
import sys

_left = False  # to a runner of ours, which gives the status itself


def leave_to_runner() -> None:
    global _left
    _left = True


def fail_at_end() -> None:
    """Let the process, which is ending, end with status 1; one that an uncaught exception ends does so anyway.

    Not a worker of `multiprocessing`, which does a part of the work.  A program that has called `sys.exit` with another
    status than 0 ends with 1, too.

    Nothing in Python can change the status by then, short of `os._exit`, which would lose what is not flushed.  The C
    library can: a function that is registered with it runs after Python is gone, and there ``exit(1)`` goes on with
    what else is registered.  That is so in glibc; elsewhere the status stays what it is.
    """
    workers = sys.modules.get("multiprocessing.process")
    if _left or getattr(sys, "last_type", None) is not None or (workers and workers.parent_process() is not None):
        return
    with contextlib.suppress(Exception):
        if (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            import ctypes

            sys.stdout.flush()
            library = ctypes.CDLL(None)
            library.__cxa_atexit(library.exit, ctypes.c_void_p(1), None)
