"""Makes the deferred calls: after the graph, after a graph that raised, and out of a list that was left behind."""

from __future__ import annotations

import logging
import sys
from typing import Any

from ..diagnostics import notice
from ..runtime import queue

log = logging.getLogger("graphmend_hook")


def deliver(items: list[queue.Item]) -> None:
    """Make the calls, in the order in which eager would have made them.

    What a call raises (a warning that is an error by now, say) leaves the compiled function, and ends the delivery as
    it would have ended the function.
    """
    for _, delivery, target, *values in items:
        delivery(target, values)


def deliver_after_failure(items: list[queue.Item] | None) -> None:
    """Make the calls whose values exist although the graph raised; say that it did, and how many calls are lost.

    Which of them eager would have reached before the operation that failed cannot be told, so none is held back.
    """
    complete = [item for item in items or () if not _is_missing(item)]
    lost = "all" if items is None else len(items) - len(complete)
    log.warning("%s", notice("GM006", error=type(sys.exc_info()[1]).__name__, count=len(complete), lost=lost))
    deliver(complete)


def drain(_nothing: None = None) -> None:
    """Deliver what a replay left in the list: generated code that the bytecode hook could not redirect."""
    while queue.graphmend_pending:
        items = list(queue.graphmend_pending)
        queue.graphmend_pending.clear()
        deliver(items)


def _is_missing(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_is_missing(item) for item in value)
    if isinstance(value, dict):
        return any(_is_missing(item) for item in value.values())
    return value is queue.MISSING
