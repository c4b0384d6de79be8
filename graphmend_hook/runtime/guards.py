"""Effects and guards under a condition that is a tensor: how they reach the end of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from . import dynamo, effects, queue
from .speculation import Unspeculable

# Where the known check functions are defined.
_CHECK_MODULES = ("torch", "torch._utils", "transformers.utils.import_utils")


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
        kind = queue.GUARD if method is None else queue.EFFECT
        effects.append((kind, _key(predicate, kept), predicate, delivery, target, *kept))


def _key(graphmend_condition: torch.Tensor, graphmend_tensors: list[Any]) -> int:
    """The number under which the condition can be had if the graph fails."""
    return dynamo.remember_condition()


def _refusal(method: str | None, target: Any, values: tuple[Any, ...], in_graph: bool) -> str:
    if method is not None:
        return effects.refusal(target, method, values) if effects.tracing() else "GM101-T09"
    if queue.guards == "keep":
        return "GM103-T01"
    return "" if in_graph else effects.refusal_of_guard(values)
