"""Of several processes that miss the same entry of the cache, one makes it and the others wait for it, a while.

The ranks of a job import the same modules in the same order, so on an empty cache each of them would rewrite every
module.  Here the first leaves a file beside the entry to come, a *claim*, and the others go on when that is gone.  A
claim is no lock: it is made by ``O_EXCL``, which network file systems know, and nobody holds it.  A process that was
killed, or a network file system that shows for a minute what is gone, costs each of the others `PATIENCE` once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator

log = logging.getLogger("graphmend_hook.cache")
PATIENCE = 5.0  # seconds; the largest module of transformers takes about one
_LOOK_EVERY = 0.005  # seconds


class Claims:
    """What one process claims, and whether it still waits for others."""

    def __init__(self) -> None:
        self._waits = True

    @contextlib.contextmanager
    def claim(self, file: str) -> Iterator[None]:
        """Claim the entry `file` for the time of the block, which looks for it again before it makes it.

        Where another process has claimed it, the block begins when that is done.  Where nobody can write, or waiting
        has been in vain before, each process makes it for itself.
        """
        place = f"{file}.claim"
        is_ours = False
        if self._waits:
            try:
                os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                is_ours = True
            except FileExistsError:
                self._wait_for(place)
            except OSError as error:
                log.debug("no claim %s: %s", place, error.strerror)
        try:
            yield
        finally:
            if is_ours:
                _remove(place)

    def _wait_for(self, place: str) -> None:
        """Return when the claim is gone; after `PATIENCE` it is removed, and this process waits for none again."""
        started = time.monotonic()
        while os.path.lexists(place):
            if time.monotonic() - started > PATIENCE:
                log.info("the process that claimed %s has not come back; this one waits no more", place)
                self._waits = False
                _remove(place)
                return
            time.sleep(_LOOK_EVERY)


def _remove(place: str) -> None:
    with contextlib.suppress(OSError):  # another process has given up waiting
        os.unlink(place)
