"""Decisions on half-precision values are made on what is in memory."""

from __future__ import annotations

import torch

from .traced_sides import only_computes
from .tracer import at_trace_time, held

_FARTHEST = 4  # how many operations may stand between a half-precision value and the decision
_HALF = (torch.float16, torch.bfloat16)


@at_trace_time(otherwise=None)
def round_decisions() -> None:
    """Let the tensor at hand be decided on half-precision values as they are in memory.

    Inductor keeps them in float32 inside a kernel, where what overflows in memory does not: `isinf` would not see it.
    Reading the bits as integers, and those as a float again, rounds at the price of a register; the operation between
    is there because Inductor takes away a pair of views.
    """
    _decide_on_memory(held("graphmend_predicate").as_proxy().node, _FARTHEST)


def _decide_on_memory(node: torch.fx.Node, steps: int) -> torch.fx.Node:
    """What a decision is to read in the place of `node`.

    A comparison is changed where it stands; a value that is also computed with is copied, so that neither the result
    nor its gradient is touched.
    """
    if _dtype(node) in _HALF:
        return _rounded(node)
    if not node.op.startswith("call") or steps == 0 or node.meta.get("graphmend_rounded"):
        return node
    instead = {value: _decide_on_memory(value, steps - 1) for value in node.all_input_nodes}
    if all(new is old for old, new in instead.items()):
        node.meta["graphmend_rounded"] = True  # with all that it depends on
        return node
    if _dtype(node) is torch.bool:
        for old, new in instead.items():
            node.replace_input_with(old, new)
        node.meta["graphmend_rounded"] = True
        return node
    if not only_computes(node):
        return node  # a second draw would be another one
    with node.graph.inserting_after(max(instead.values(), key=list(node.graph.nodes).index)):
        copied = node.graph.node_copy(node, lambda value: instead[value])
    copied.meta["graphmend_rounded"] = True
    return copied


def _dtype(node: torch.fx.Node) -> torch.dtype | None:
    return getattr(node.meta.get("example_value"), "dtype", None)


def _rounded(value: torch.fx.Node) -> torch.fx.Node:
    known = value.meta.get("graphmend_rounded_value")
    if known is not None:
        return known
    rounded, fake = value, value.meta["example_value"]
    steps = ("detach", ()), ("view", (torch.int16,)), ("bitwise_and", (-1,)), ("view", (fake.dtype,))
    for method, arguments in steps:
        with value.graph.inserting_after(rounded):
            rounded = value.graph.call_method(method, (rounded, *arguments))
        fake = getattr(fake, method)(*arguments)
        rounded.meta["example_value"], rounded.meta["graphmend_rounded"] = fake, True
    value.meta["graphmend_rounded_value"] = rounded
    return rounded
