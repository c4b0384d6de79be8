"""Draws of random numbers that nothing uses: AOTAutograd takes them out of a graph, and all that follow are others.

Behind a break they stay, where the program keeps what was drawn in a name.  So they are used in a graph that would have
ended there.
"""

from __future__ import annotations

import operator

import torch

from .compilation import Compilation
from .operations import facts_of
from .writes import operations

_TEXT = "graphmend_hook: a count is never below zero"


def use(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let an assertion that always holds use each draw which the output of the graph does not rest on."""
    if compilation.output.export:
        return
    graph = module.graph
    used = {graph.output_node()}
    for node in reversed(graph.nodes):
        if node in used:
            used.update(node.all_input_nodes)
    unused = [node for node in operations(module) if node.graph is graph and node not in used and _is_draw(node)]
    for node in unused:
        with graph.inserting_after(node):
            finite = graph.call_method("isfinite", (node,))
        with graph.inserting_after(finite):
            count = graph.call_method("sum", (finite,))
        with graph.inserting_after(count):
            holds = graph.call_function(operator.ge, (count, 0))
        with graph.inserting_after(holds):
            graph.call_function(torch._assert_async, (holds, _TEXT))
    if unused:
        module.recompile()


def _is_draw(node: torch.fx.Node) -> bool:
    """Inside a function transform nothing can be asserted; what is drawn there is seen by nobody behind a break."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or torch._C._functorch.is_functorch_wrapped_tensor(value):
        return False
    holds_numbers = value.layout is torch.strided and not value.is_quantized
    return holds_numbers and node.op.startswith("call") and facts_of(node).draws
