"""Makes the deferred calls: after the graph, after a graph that raised, and out of a list that was left behind."""

from __future__ import annotations

import logging
import sys

import torch
from torch.utils._pytree import tree_iter

from ..diagnostics import notice
from . import queue

log = logging.getLogger("graphmend_hook")
_NOTE = "graphmend_hook: raised at the end of the compiled graph that the guard is in"


def deliver(items: list[queue.Item]) -> None:
    """Make the calls, in the order in which eager would have made them, those under a condition only if it held.

    What a call raises (a guard's exception, a warning that is an error by now) leaves the compiled function, and ends
    the delivery as it would have ended the function.
    """
    conditions = [item[1] for item in items if item[0] is not queue.ITEM]
    held = iter(_read(conditions) if conditions else ())
    for item in items:
        if item[0] is queue.ITEM:
            item[1](item[2], item[3:])
        elif next(held):
            _call(item)


def deliver_after_failure(items: list[queue.Item]) -> None:
    """Make the calls whose values exist although the graph raised; say that it did, and how many calls are lost.

    That is where its frame may not run again.  Which of the calls eager would have reached before the operation that
    failed cannot be told, so none is held back.
    """
    known = [item for item in items if item[0] is not queue.GUARD]
    complete = [item for item in known if not any(value is queue.MISSING for value in tree_iter(item))]
    lost = len(known) - len(complete)
    if lost or complete:
        log.warning("%s", notice("GM006", error=type(sys.exc_info()[1]).__name__, count=len(complete), lost=lost))
    deliver(complete)


def _call(item: queue.Item) -> None:
    """Make the call of an item that has a condition."""
    _, _, delivery, target, *values = item
    if item[0] is not queue.GUARD:
        delivery(target, values)
        return
    try:
        delivery(target, values)
    except Exception as error:
        if sys.version_info >= (3, 11):
            error.add_note(_NOTE)
        raise


def _read(predicates: list[torch.Tensor]) -> list[bool]:
    """The values of tensors () of bool, with one look at each device."""
    if len({predicate.device for predicate in predicates}) == 1 and len(predicates) > 1:
        read: list[bool] = torch.stack(predicates).tolist()
        return read
    return [bool(predicate) for predicate in predicates]


def drain() -> None:
    """Deliver what a replay left in the list: generated code that the bytecode hook could not redirect."""
    while queue.graphmend_pending:
        items = list(queue.graphmend_pending)
        queue.graphmend_pending.clear()
        deliver(items)
