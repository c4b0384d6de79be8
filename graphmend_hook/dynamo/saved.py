"""What is computed of an input that the graph writes to, kept for the backward pass.

AOTAutograd may save the input instead and compute it anew in the backward pass, of what the input has become by then:
the gradient is wrong, without us too (torch 2.12 to 2.15).  Where a break had stood between the two, it was not.
"""

from __future__ import annotations

import torch

from .compilation import Compilation
from .orders import trace_as_written
from .writes import fakes_of, memory_of, operations, written_by

# Caches of compiled code tell graphs apart by their text.
_KEPT = "graphmend_kept_"


def keep_results(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let no backward pass compute anew what is computed of an input that the graph writes to.

    What a body computes, a checkpoint's say, cannot be kept so: then the frame is traced as it was written.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    nodes = [*module.graph.nodes]
    try:
        given = memory_of(node for node in nodes if not node.op.startswith("call"))
        written = given.intersection(set().union(*map(written_by, operations(module))))
        readers = [node for node in nodes if node.op.startswith("call") and _reads(node, written)]
    except NotImplementedError:  # a wrapper of a function transform has no memory of its own
        return
    if not readers or not any(fake.requires_grad for node in nodes for fake in fakes_of(node)):
        return
    if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in readers):
        trace_as_written(compilation, "a body reads an input that the graph writes to", even_one_graph=True)
    for node in readers:
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        node._rename(f"{_KEPT}{node.name}")
    module.recompile()


def _reads(node: torch.fx.Node, written: set[int]) -> bool:
    return not written.isdisjoint(memory_of(node.all_input_nodes))
