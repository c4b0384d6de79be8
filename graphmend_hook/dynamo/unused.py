"""What nothing uses: AOTAutograd takes it out of a graph, with the random numbers that it draws and what it raises.

Behind a break it stays: what is asked for its truth is a result of the graph that ends there, and the program keeps
what was drawn in a name.  So these are used in a graph that would have ended there.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import torch

from .compilation import Compilation
from .operations import facts_of, may_fail, name_of
from .variables import Variable, is_tensor, tensor_node
from .writes import operations

_TEXT = "graphmend_hook: a count is never below zero"


@dataclass
class _Asked:
    """The nodes whose truth, or numbers, an attempt has asked for."""

    nodes: set[torch.fx.Node] = field(default_factory=set)


def remember(compilation: Compilation, variable: Variable) -> bool:
    """Is it a tensor?  Then a break where it is asked for would have made it a result of the graph."""
    if not is_tensor(variable):
        return False
    compilation.of(_Asked).nodes.add(tensor_node(variable))
    compilation.judge(use)
    return True


def keep(compilation: Compilation, variable: Variable) -> None:
    """As `remember`, of what nothing else asks for: Dynamo itself drops an item of a tensor before it is judged."""
    if remember(compilation, variable):
        node = tensor_node(variable)
        if node.target is operator.getitem and not node.users and _holds_numbers(node) and may_fail(node):
            _use(node.graph, node)


def use(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let an assertion that always holds use what the output of the graph does not rest on.

    That is each draw, and of what was asked for, what may fail.
    """
    if compilation.output.export:
        return
    graph, asked, operating = module.graph, {*compilation.of(_Asked).nodes}, {*operations(module)}
    used = {graph.output_node(), *(node for node in graph.nodes if name_of(node).startswith("_assert"))}
    unused: list[torch.fx.Node] = []
    for node in reversed(graph.nodes):
        if node in asked:
            asked.update(node.all_input_nodes)
        if node not in used and node in operating and _holds_numbers(node) and _has_effect(node, node in asked):
            unused.append(node)
            used.add(node)
        if node in used:
            used.update(node.all_input_nodes)
    for node in unused:
        _use(graph, node)
    if unused:
        module.recompile()


def _has_effect(node: torch.fx.Node, is_asked_for: bool) -> bool:
    return facts_of(node).draws or (is_asked_for and may_fail(node))


def _use(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    with graph.inserting_after(node):
        finite = graph.call_method("isfinite", (node,))
    with graph.inserting_after(finite):
        count = graph.call_method("sum", (finite,))
    with graph.inserting_after(count):
        holds = graph.call_function(operator.ge, (count, 0))
    with graph.inserting_after(holds):
        graph.call_function(torch._assert_async, (holds, _TEXT))


def _holds_numbers(node: torch.fx.Node) -> bool:
    """Inside a function transform nothing can be asserted; what is drawn there is seen by nobody behind a break."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or torch._C._functorch.is_functorch_wrapped_tensor(value):
        return False
    return value.layout is torch.strided and not value.is_quantized and node.op.startswith("call")
