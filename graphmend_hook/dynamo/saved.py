"""What is computed of an input that the graph writes to, kept for the backward pass.

AOTAutograd may save the input instead and compute it anew in the backward pass, of what the input has become by then:
the gradient is wrong, without us too (torch 2.12 to 2.15).  Where a break had stood between the two, it was not.
"""

from __future__ import annotations

import torch

from .compilation import Compilation
from .writes import memory_of, written_by

# Caches of compiled code tell graphs apart by their text.
_KEPT = "graphmend_kept_"


def keep_results(_compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let no backward pass compute anew what is computed of an input that the graph writes to."""
    from torch.utils.checkpoint import CheckpointPolicy

    nodes = [*module.graph.nodes]
    written = set().union(*map(written_by, nodes)) & memory_of(node for node in nodes if not node.op.startswith("call"))
    for node in nodes:
        if node.op.startswith("call") and not written.isdisjoint(memory_of(node.all_input_nodes)):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
            node._rename(f"{_KEPT}{node.name.removeprefix(_KEPT)}")
    module.recompile()
