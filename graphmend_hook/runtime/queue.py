"""Where traced code leaves effects, and where the epilogue picks them up.  Imports nothing.

`graphmend_pending` is always empty: traced code appends to it, Dynamo replays the append after the graph, and the
bytecode hook of `graphmend_hook.epilogue` makes that replay assign to `graphmend_sink` instead.  So Dynamo's guard on
the list's length never fails and no two threads share an item.  The names are ours alone: generated code that has one
of them touches this module, however it got there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# (delivery, target, values): `delivery(target, values)` makes the original call.
Item = tuple[Callable[[Any, Any], Any], Any, tuple[Any, ...]]

graphmend_pending: list[Item] = []
# False once this torch generated code that the bytecode hook did not understand; guarded by what was traced before.
understood: bool = True


class Sink:
    """Takes the list that Dynamo's replay assigns, on the thread that ran the graph."""

    deliver: Callable[[list[Item]], None]

    def __setitem__(self, key: slice, items: list[Item]) -> None:
        self.deliver(items)


graphmend_sink = Sink()
