"""Report files: which name a process writes to, so that none of a job is lost, and how it is written."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
from collections.abc import Iterator

from .ledger import Document, host_name, ranks_of_process

# "PID PATH" of the process that was started with GRAPHMEND_REPORT=PATH; its child processes inherit both.
_OWNER = "_GRAPHMEND_REPORT_OWNER"
_START = b'{\n "schema": '
_CLOCK = 0.02  # seconds by which the time of a file may lag: kernels take it from a clock that ticks


def claim(target: str) -> None:
    """Let this process be the one that writes to `target`, unless it was started by one that does."""
    path = fill(target)
    if _owner()[1] != path:
        os.environ[_OWNER] = f"{os.getpid()} {path}"


def fill(target: str) -> str:
    """The path that `target`, a setting of GRAPHMEND_REPORT, means in this process at this moment.

    Where neither ``{pid}`` nor ``{rank}`` tells the ranks of a job apart, the rank is put before the suffix.
    """
    ranks = ranks_of_process()
    rank = ranks["rank"]
    if rank is not None and (ranks["world_size"] or 0) > 1 and not re.search(r"\{pid\}|\{rank\}", target):
        target = _before_suffix(target, f"rank{rank}")
    target = target.replace("{pid}", str(os.getpid())).replace("{host}", host_name())
    return target.replace("{rank}", "none" if rank is None else str(rank))


def as_bytes(document: Document) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"


def write(document: Document, target: str, started: float) -> None:
    """Write the report of this process to `target`, or beside it where another process of the job wrote there.

    started: when the hook's work began (seconds since the epoch); an older report is left from an earlier run.
    Raises OSError that names what is wrong.
    """
    path = fill(target)
    data = as_bytes(document)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as stream:  # a terminal, a pipe or a device, which nothing can be renamed to
            stream.write(data)
        return
    for name in _names(os.path.realpath(path)):
        if _put(data, name, started):
            return


def replace(document: Document, path: str) -> None:
    """Write `document` to `path` whatever report stands there.  Raises OSError that names what is wrong."""
    if not _put(as_bytes(document), os.path.realpath(path), float("inf")):
        raise FileExistsError(errno.EEXIST, f"another process is writing there, or {path}.tmp was left behind")


def _owner() -> tuple[str, str]:
    pid, _space, path = os.environ.get(_OWNER, "").partition(" ")
    return pid, path


def _names(path: str) -> Iterator[str]:
    """`path` itself if it is for this process, then names that only this process may want."""
    pid = str(os.getpid())
    owner, owned = _owner()
    if os.path.realpath(owned) != path or owner == pid:
        yield path
    yield _before_suffix(path, pid)
    for number in itertools.count(2):
        yield _before_suffix(path, f"{pid}-{number}")


def _before_suffix(path: str, text: str) -> str:
    stem, suffix = os.path.splitext(path)
    return f"{stem}.{text}{suffix}"


def _put(data: bytes, path: str, started: float) -> bool:
    """Write to a file of its own, then rename it to `path`; False where another process has been there since `started`.

    The temporary file has one name for all, and exists only while one process writes: so nobody can come between the
    look at `path` and the renaming.
    """
    temporary = f"{path}.tmp"
    try:
        stream = open(temporary, "xb")  # noqa: SIM115  closed below, before the renaming
    except FileExistsError:
        return False
    with contextlib.ExitStack() as undo:
        undo.callback(os.unlink, temporary)
        with stream:
            stream.write(data)
        if not _may_replace(path, started):
            return False
        os.replace(temporary, path)
        undo.pop_all()  # the name may be that of another process by now
    return True


def _may_replace(path: str, started: float) -> bool:
    """Is there no file, an empty one, or a report that is older than this process?

    Raises OSError for anything else: a mistyped path must not cost somebody's file.
    """
    try:
        with open(path, "rb") as stream:
            state, start = os.fstat(stream.fileno()), stream.read(len(_START))
    except FileNotFoundError:
        return True
    if start and start != _START:
        raise FileExistsError(errno.EEXIST, "there is a file that is not a report; move it, or choose another path")
    return not start or state.st_mtime < started - _CLOCK
