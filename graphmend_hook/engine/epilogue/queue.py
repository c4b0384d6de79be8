"""Where traced code leaves effects, and where the epilogue picks them up.  Imports nothing.

`graphmend_pending` is always empty: traced code appends to it, Dynamo replays the append after the graph, and the
bytecode hook of `delivery` makes that replay assign to `graphmend_sink` instead.  So Dynamo's guard on
the list's length never fails and no two threads share an item.  The names are ours alone: generated code that has one
of them touches this module, however it got there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# (ITEM, delivery, target, *values): `delivery(target, values)` makes the original call.
# (EFFECT, predicate, delivery, target, *values): the same, if the tensor `predicate` is true.
# (GUARD, predicate, delivery, target, *values): likewise, and the call raises.
# (FIRST_GUARD, predicate, delivery, target, *values): the same, before which the trace has stored nothing.
Item = tuple[Any, ...]


class _NotConstant:
    """Begins an item: of a tuple that might be a constant, Dynamo guards on every value."""


ITEM, EFFECT, GUARD, FIRST_GUARD = _NotConstant(), _NotConstant(), _NotConstant(), _NotConstant()
GUARDS = (GUARD, FIRST_GUARD)
LATE = _NotConstant()  # begins a value, (LATE, function, *reads), that is computed at the delivery
NUMBER = _NotConstant()  # begins a value, (NUMBER, tensor), of which a text shows the number alone


def now(value: Any) -> Any:
    """A value of an item, computed if it has waited for that."""
    marker = value[0] if type(value) is tuple and len(value) > 0 else None
    if marker is LATE:
        return value[1](*[now(part) for part in value[2:]])
    return value[1] if marker is NUMBER else value


def as_tuple(*items: Any) -> tuple[Any, ...]:
    """Of a tuple that might be a constant, Dynamo guards on every value: such a one is made at the delivery."""
    return items


def as_list(*items: Any) -> list[Any]:
    """The same of a list."""
    return [*items]


def as_dict(keys: tuple[Any, ...], *values: Any) -> dict[Any, Any]:
    """The same of a dict."""
    return dict(zip(keys, values))  # noqa: B905  as many


graphmend_pending: list[Item] = []
# False once this torch generated code that the bytecode hook did not understand; guarded by what relies on that.
understood: bool = True
# What becomes of guards: "exact", "async" or "keep", as GRAPHMEND_GUARDS says.
guards: str = "exact"
# Names of inputs whose values may be guarded, as GRAPHMEND_VALUES says.
values: tuple[str, ...] = ()
specialise = True  # does [Value] decide branches whose sides cannot be merged?


class _Missing:
    """Stands for an output of a graph that raised, and for whatever would have been made of it."""

    def __getitem__(self, key: object) -> _Missing:
        return self

    def __getattr__(self, name: str) -> _Missing:
        return self

    def __call__(self, *args: object, **kwargs: object) -> _Missing:
        return self


MISSING = _Missing()


def size_of(sizes: Sequence[Any]) -> Any:
    """``torch.Size(sizes)``, of sizes that may be missing."""
    import torch

    return MISSING if any(size is MISSING for size in sizes) else torch.Size(sizes)


# What generated code assigns to, by item; filled in by `delivery` before any code is generated.
graphmend_sink: Any = None  # takes the items, in order, after the graph
graphmend_failed: Any = None  # takes the items of a graph that raised
graphmend_distrust: Any = None  # takes None: generated code was not understood
