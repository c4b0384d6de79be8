"""Which mechanisms of ours work on this torch: each proves itself on a tiny program before anything rests on it.

`probes` has the programs.  They run once for a machine, a torch, a Python and a version of this package, at the first
trace; that all have passed is kept in the cache directory.  What has failed is tried again in the next process.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path

from ...diagnostics import notice
from ...version import __version__
from .own_code import FILES

log = logging.getLogger("graphmend_hook")


class Mechanism(Enum):
    """What rests on torch's internals, in the words of the report."""

    TRACING = "a trace knows that it is one"
    DELIVERY = "what waits for the end of the graph is delivered"
    ORDER = "it is delivered after attributes are written"
    TEXTS = "another text is no other compilation"
    FAILURE = "a function whose graph fails runs again as it was written"
    GUARDS = "a guard of ours has a function compiled anew"
    RESTART = "a trace starts anew"
    CAPTURE = "what is taken for granted of a captured size does no harm where it does not hold"


EVERYTHING = (Mechanism.TRACING, Mechanism.RESTART)  # without these nothing is mended
failed: frozenset[Mechanism] = frozenset()
directory: Path | None = None  # where what was found is kept; None: in this process only
prover: Callable[[], Iterable[Mechanism] | None] | None = None  # says which fail; None: not to be told just now
_is_proved = False
is_proving = False  # what happens meanwhile is nothing of the program's


def works(*mechanisms: Mechanism) -> bool:
    """Does all that is named work on this torch, as far as is known?"""
    return failed.isdisjoint(mechanisms)


def prove() -> None:
    """Find out what works, unless that is known; what fails is said, once in a process."""
    global _is_proved, is_proving, failed
    if _is_proved or prover is None:
        return
    _is_proved = True  # what is proved asks as well
    if directory is not None and (directory / _name()).exists():
        return
    is_proving = True
    try:
        found = prover()
    except BaseException:
        failed = frozenset(EVERYTHING)  # nothing is proved
        raise
    finally:
        is_proving = False
    if found is None:
        _is_proved = False
        return
    failed = frozenset(found)
    if not failed:
        _keep()
        return
    import torch

    what = "; ".join(mechanism.value for mechanism in Mechanism if mechanism in failed)
    log.warning("%s", notice("GM011", torch=torch.__version__, version=__version__, what=what))


def _keep() -> None:
    """Leave a file that says so; where that cannot be done, the next process proves it again."""
    if directory is None or sys.dont_write_bytecode:
        return
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / _name()).touch(mode=0o600)
    except Exception as error:
        log.debug("what works on this torch is not kept: %s", error)


def _name() -> str:
    """Says what it holds for: versions, and the state of this package's files."""
    import torch

    parts = [__version__, torch.__version__, str(torch.version.git_version), sys.version]
    states = [(file.name, file.stat()) for file in FILES]
    parts += [f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states]
    return f"proved-{hashlib.blake2b(chr(0).join(parts).encode(), digest_size=8).hexdigest()}"
