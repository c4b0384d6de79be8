"""What operations of the graph give in the call for which Dynamo compiles the frame: they are run on its real inputs.

So an assumption on a number that the data decides is known to be false before it makes the graph of that call fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..door.frame_guards import result_of
from ..door.tracer import log
from ..door.variables import LITTLE, PLAIN_TENSORS, bytes_of
from ..facts.operations import facts_of, is_of_torch
from ..facts.writes import fakes_of, memory_of, written_by


def values_of(wanted: Sequence[torch.fx.Node]) -> list[Any] | None:
    """What the nodes of a graph stand for; None where running their operations would be noticed, or fails."""
    try:
        found = dict(_run(wanted))
        return [found[node] for node in wanted]
    except Exception as error:
        log.debug("not known in this call: %s", error)
        return None


def is_any_false(conditions: Sequence[torch.fx.Node]) -> bool:
    """Is one of them false, before what another is made of fails?"""
    try:
        return not all(bool(value) for _, value in _run(conditions))
    except Exception as error:
        log.debug("not known in this call: %s", error)
        return False


def is_made_of_constants(node: torch.fx.Node) -> bool:
    """Is the operation given no tensor, and has no more to do than to make one of what it is given?  It is made once.

    So it cannot fail in the graph either, whatever the data is.
    """
    fakes = fakes_of(node)
    is_plain = bool(fakes) and all(type(fake.numel()) is int and fake.device.type != "meta" for fake in fakes)
    if node.all_input_nodes or not is_plain or bytes_of(fakes) > LITTLE:
        return False
    try:
        with torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
            _computed(node, {})
    except Exception as error:
        log.debug("%s may fail: %s", node, error)
        return False
    return True


def _needed(wanted: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
    """The nodes that make the wanted ones, in order, those that write to what makes them among them."""
    nodes = list(wanted[0].graph.nodes) if wanted else []
    writers = [(node, written) for node in nodes if (written := written_by(node))]
    needed: set[torch.fx.Node] = set()
    waiting = [*wanted]
    while waiting:
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        memory = memory_of(needed)
        waiting = [node for node, written in writers if node not in needed and not written.isdisjoint(memory)]
    written = {storage for node, written in writers if node in needed for storage in written}
    if not written.isdisjoint(memory_of(node for node in nodes if node.op == "placeholder")):
        raise ValueError("an input is written to")
    return [node for node in nodes if node in needed]


def _run(wanted: Sequence[torch.fx.Node]) -> Iterator[tuple[torch.fx.Node, Any]]:
    """Run the operations, each result kept until it has been used for the last time; the wanted ones, in order."""
    order = _needed(wanted)
    results: dict[torch.fx.Node, Any] = {}
    readers, asked = Counter(operand for node in order for operand in node.all_input_nodes), {*wanted}
    for node in order:
        with torch.no_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
            results[node] = _input(node) if node.op == "placeholder" else _computed(node, results)
        if node in asked:
            yield node, results[node]
        for operand in node.all_input_nodes:
            readers[operand] -= 1
            if not readers[operand]:
                del results[operand]


def _input(node: torch.fx.Node) -> Any:
    """The real input of the graph; raises ValueError where it is none that holds data."""
    value = node.meta["grapharg"].example
    if isinstance(value, torch.SymInt):
        return value.node.require_hint()
    if type(value) not in PLAIN_TENSORS or value.device.type == "meta":
        raise ValueError(f"{node} is no plain tensor")
    return value


def _computed(node: torch.fx.Node, results: dict[torch.fx.Node, Any]) -> Any:
    """What the operation gives; raises ValueError where it may do anything else."""
    facts = facts_of(node)
    if not node.op.startswith("call_") or facts.draws or facts.writes is None or not is_of_torch(node):
        raise ValueError(f"{node.format_node()} may do more than compute")
    return result_of(node, results)
