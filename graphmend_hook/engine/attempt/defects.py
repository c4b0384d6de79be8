"""Exceptions of this package's own while something is compiled: the program goes on as it was written.

Each is said once, with a code, and is in the report.  With ``_GRAPHMEND_DEFECTS=raise``, as in this project's own
tests, it ends the program instead.
"""

from __future__ import annotations

import logging
import os
import traceback

import torch

from ...diagnostics import DefectError, defects_are_fatal, notice
from ..door.own_code import OWN_FILES
from . import refusals

log = logging.getLogger("graphmend_hook")


def report(what: str, error: Exception) -> None:
    """Say once for each place in this package that `what` has failed there; raises DefectError where that is fatal."""
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in OWN_FILES]
    file, line, function = (inside[-1].filename, inside[-1].lineno or 0, inside[-1].name) if inside else ("?", 0, "?")
    if defects_are_fatal():
        raise DefectError(f"{what} failed at {file}:{line} in {function}") from error
    if refusals.add(refusals.OWN_ERROR, (file, line, function)):
        place = f"{os.path.basename(file)}:{line}"
        log.warning(
            "%s",
            notice("GM010", what=what, place=place, error=f"{type(error).__name__}: {error}", torch=torch.__version__),
        )
        log.debug("the exception:", exc_info=error)


def is_fatal(error: BaseException | None) -> bool:
    """Is it, or what it was raised from, an exception that must end the program?"""
    while error is not None:
        if isinstance(error, DefectError):
            return True
        error = error.__cause__ or error.__context__
    return False
