"""Decisions on half-precision values are made on what is in memory."""

from __future__ import annotations

import torch

from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, tensor_node
from ...engine.facts.operations import is_plain, only_computes

_FARTHEST = 4  # how many operations may stand between a half-precision value and the decision
_HALF = (torch.float16, torch.bfloat16)


class Rounded:
    """The nodes of an attempt that read half-precision values as they are in memory."""

    def __init__(self) -> None:
        self.nodes: set[torch.fx.Node] = set()


@question(otherwise=None)
def round_decisions(trace: Trace, predicate: Variable) -> None:
    """Let the predicate be decided on half-precision values as they are in memory.

    Inductor keeps them in float32 inside a kernel, where what overflows in memory does not: `isinf` would not see it.
    Reading the bits as integers, and those as a float again, rounds at the price of a register; the operation between
    is there because Inductor takes away a pair of views.
    """
    node = tensor_node(predicate)
    _decide_on_memory(node, _FARTHEST, node, trace.compilation.of(Rounded).nodes)


def _decide_on_memory(
    node: torch.fx.Node, steps: int, before: torch.fx.Node, done: set[torch.fx.Node]
) -> torch.fx.Node:
    """What a decision is to read in the place of `node`; what is new stands right before the node `before`.

    A comparison is changed where it stands; a value that is also computed with is copied, so that neither the result
    nor its gradient is touched, if nothing was written since it was computed.
    """
    if node in done:
        return node
    if _dtype(node) in _HALF:
        return _rounded(node, before, done)
    if steps == 0 or not is_plain(node):
        return node
    if _dtype(node) is torch.bool:
        for value in node.all_input_nodes:
            node.replace_input_with(value, _decide_on_memory(value, steps - 1, node, done))
        return node
    if not _is_unwritten(node, before):
        return node
    instead = {value: _decide_on_memory(value, steps - 1, before, done) for value in node.all_input_nodes}
    if all(new is old for old, new in instead.items()):
        return node
    with node.graph.inserting_before(before):
        copied = node.graph.node_copy(node, lambda value: instead[value])
    done.add(copied)
    return copied


def _dtype(node: torch.fx.Node) -> torch.dtype | None:
    return getattr(node.meta.get("example_value"), "dtype", None)


def _is_unwritten(node: torch.fx.Node, before: torch.fx.Node) -> bool:
    """Has nothing between the two nodes written to any tensor?"""
    step = node.next
    while step is not before:
        if not only_computes(step):
            return False
        step = step.next
    return True


def _rounded(value: torch.fx.Node, before: torch.fx.Node, done: set[torch.fx.Node]) -> torch.fx.Node:
    rounded, fake = value, value.meta["example_value"]
    steps = ("view", (torch.int16,)), ("bitwise_and", (-1,)), ("view", (fake.dtype,))
    for method, arguments in steps:
        with value.graph.inserting_before(before):
            rounded = value.graph.call_method(method, (rounded, *arguments))
        fake = getattr(fake, method)(*arguments)
        rounded.meta["example_value"] = fake
        done.add(rounded)
    return rounded
