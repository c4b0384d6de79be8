"""Effects and guards under a condition that is a tensor: how they reach the end of the graph, and what happens there.

A guard's condition, and the tensors that its message needs, also pass through an operator of our own in the graph, the
*witness*, which puts copies aside as the graph runs.  If the graph fails later on, at an operation that the guard was
to protect, the guard's exception can still be raised, as eager would have raised it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from . import dynamo, effects, queue
from .speculation import Unspeculable

# Where the known check functions are defined.
_CHECK_MODULES = ("torch", "torch._utils", "transformers.utils.import_utils")

_library = torch.library.Library("graphmend", "DEF")
_library.define("witness(Tensor predicate, Tensor[] values, int key) -> Tensor")


class _Witnessed(threading.local):
    def __init__(self) -> None:
        self.seen: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}


witnessed = _Witnessed()


def _witness(predicate: torch.Tensor, values: list[torch.Tensor], key: int) -> torch.Tensor:
    if torch._C._current_graph_task_id() == -1:  # not a recomputation in backward, which no delivery follows
        witnessed.seen[key] = (predicate.clone(), [value.clone() for value in values])
    return predicate.clone()


def _fake_witness(predicate: torch.Tensor, values: list[torch.Tensor], key: int) -> torch.Tensor:
    return torch.empty_like(predicate)


_library.impl("witness", _witness, "CompositeExplicitAutograd")
torch.library.register_fake("graphmend::witness", _fake_witness, lib=_library)


def take_witnessed() -> dict[int, tuple[torch.Tensor, list[torch.Tensor]]]:
    """What the graph that ran last on this thread put aside, once."""
    seen, witnessed.seen = witnessed.seen, {}
    return seen


def is_check(graphmend_check: Any) -> bool:
    """Is it one of the known functions that raise if a condition does not hold?"""
    if is_dynamo_compiling():
        return dynamo.defined_in(_CHECK_MODULES)
    return getattr(graphmend_check, "__module__", "") in _CHECK_MODULES


def commit(every: Sequence[tuple[Any, ...]]) -> None:
    """Leave the effects and guards of both sides for the end of the graph; raises Unspeculable before the first one.

    every: (predicate, method, delivery, target, values); `method` is None for a guard, whose target is its text.
    """
    in_graph = queue.guards == "async" or not effects.tracing()  # an exported program has no epilogue
    for _, method, _, target, values in every:
        refusal = _refusal(method, target, values, in_graph)
        if refusal:
            raise Unspeculable(refusal)
    for predicate, method, delivery, target, values in every:
        if method is None and in_graph:
            torch._assert_async(~predicate, target)
            continue
        kept = [effects.kept(value) for value in values]
        key = dynamo.fresh_key()
        tensors = [value for value in kept if isinstance(value, torch.Tensor)]
        seen = torch.ops.graphmend.witness.default(predicate, tensors, key)
        effects.append((queue.GUARD if method is None else queue.EFFECT, key, seen, delivery, target, *kept))


def _refusal(method: str | None, target: Any, values: tuple[Any, ...], in_graph: bool) -> str:
    if method is not None:
        return effects.refusal(target, method, values) if effects.tracing() else "GM101-T09"
    if queue.guards == "keep":
        return "GM103-T01"
    return "" if in_graph else effects.refusal_of_guard(values)
