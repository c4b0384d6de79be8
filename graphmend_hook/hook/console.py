"""The tool's own messages on stderr, as the setting `log` asks for them."""

from __future__ import annotations

import logging

log = logging.getLogger("graphmend_hook")
_FORMAT = "graphmend_hook[%(process)d] %(levelname)s %(message)s"
_before: tuple[int, bool, list[logging.Handler]] | None = None  # the logger's state, once we have changed it


def show(level: str) -> None:
    """Show messages of `level` and above; "" gives the logger back as it was before the first call."""
    global _before
    if not level:
        if _before is not None:
            log.setLevel(_before[0])
            log.propagate, log.handlers[:] = _before[1:]
            _before = None
        return
    if _before is None:
        _before = log.level, log.propagate, list(log.handlers)
    log.setLevel(level)
    if not log.handlers:  # else the program shows messages in its own way
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        log.addHandler(handler)
        log.propagate = False
