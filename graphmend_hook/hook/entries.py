"""What lies in a cache directory: the entries of every fingerprint; for commands, no import needs it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from .cache import cache_root, distrust, unused


def take_stock(directory: Path | None) -> tuple[Path | None, dict[Path, int], str]:
    """What lies in the cache in `directory`, None for that of this user; creates nothing.

    The directory, None if it has no place; its entries, of every fingerprint, with their sizes in bytes; and why a hook
    does not use it, "" if it does.
    """
    root = directory
    try:
        root = cache_root(directory)
        if not root.exists():
            return root, {}, ""
        entries = dict(_entries(root))
        for place in (root, *sorted({file.parent for file in entries})):
            why = distrust(place)
            if why:
                return root, entries, unused(place, why)
    except (OSError, RuntimeError) as error:  # no home directory, a file in the way, no right to read
        return root, {}, unused(root, error)
    return root, entries, ""


def _entries(root: Path) -> Iterator[tuple[Path, int]]:
    """Files that have the name and the place of an entry; links are followed nowhere."""
    for folder in sorted(os.scandir(root), key=lambda item: item.name):
        if re.fullmatch(r"[0-9a-f]{16}", folder.name) and folder.is_dir(follow_symlinks=False):
            for item in sorted(os.scandir(folder), key=lambda item: item.name):
                if re.fullmatch(r".+\.[0-9a-f]{32}\.gmc", item.name) and item.is_file(follow_symlinks=False):
                    yield Path(item.path), item.stat(follow_symlinks=False).st_size
