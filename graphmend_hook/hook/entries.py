"""What lies in a cache directory: the entries of every fingerprint, and how to delete them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..diagnostics import notice
from .cache import cache_root, distrust

_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_ENTRY = re.compile(r".+\.[0-9a-f]{32}\.gmc")


@dataclass(frozen=True)
class Entry:
    """One entry: its file, the fingerprint of what made it, and its size in bytes."""

    file: Path
    fingerprint: str
    size: int


@dataclass(frozen=True)
class Inventory:
    """A cache directory.  root: None if it has no place.  problem: why a hook does not use it, "" if it does."""

    root: Path | None
    entries: tuple[Entry, ...] = ()
    problem: str = ""


def take_stock(directory: Path | None) -> Inventory:
    """Look at the cache in `directory`, None for that of this user, and create nothing."""
    root = directory
    try:
        root = cache_root(directory)
        if not root.exists():
            return Inventory(root)
        entries = tuple(_entries(root))
        for place in (root, *sorted({entry.file.parent for entry in entries})):
            why = distrust(place)
            if why:
                return Inventory(root, entries, notice("GM003", directory=place, why=why))
    except (OSError, RuntimeError) as error:  # no home directory, a file in the way, no right to read
        return Inventory(root, problem=notice("GM003", directory=root, why=error))
    return Inventory(root, entries)


def delete(entry: Entry) -> None:
    """Delete the file, and its directory if that was its last one.  Raises OSError."""
    entry.file.unlink(missing_ok=True)  # another process may be at it too
    with contextlib.suppress(OSError):  # not empty yet
        entry.file.parent.rmdir()


def _entries(root: Path) -> Iterator[Entry]:
    """Files that have the name and the place of an entry; links are followed nowhere."""
    for folder in sorted(os.scandir(root), key=lambda item: item.name):
        if not _FINGERPRINT.fullmatch(folder.name) or not folder.is_dir(follow_symlinks=False):
            continue
        for item in sorted(os.scandir(folder), key=lambda item: item.name):
            if _ENTRY.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                yield Entry(Path(item.path), folder.name, item.stat(follow_symlinks=False).st_size)
