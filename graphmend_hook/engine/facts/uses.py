"""Where the value of a node of a graph is used, also in and behind the bodies of activation checkpoints."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch

_CHECKPOINT = "tag_activation_checkpoint"  # the operation's operands are those of its body, which it gives a tuple of


class Uses:
    """Those of a complete graph, with the bodies that it calls."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._calls: dict[torch.fx.Graph, torch.fx.Node] = {}  # by the body
        self._bodies: dict[torch.fx.Node, torch.fx.Graph] = {}  # by the call
        self._nodes: set[torch.fx.Node] = set()  # nodes that are left: a user may have been dropped
        self._look_through(module)

    def _look_through(self, module: torch.fx.GraphModule) -> None:
        self._nodes.update(module.graph.nodes)
        for node in module.graph.nodes:
            if getattr(node.target, "__name__", "") == _CHECKPOINT:
                body = getattr(module, node.args[0].target)
                self._calls[body.graph], self._bodies[node] = node, body.graph
                self._look_through(body)

    def of(self, node: torch.fx.Node) -> Iterator[tuple[torch.fx.Node, torch.fx.Node]]:
        """Each operation, or output of the whole graph, that uses the value, and the node that stands for it there."""
        for user in node.users:
            if user not in self._nodes:
                continue
            if user in self._bodies:
                inputs = self._bodies[user].find_nodes(op="placeholder")
                for operand, value in zip(user.args[1:], inputs, strict=True):
                    if operand is node:
                        yield from self.of(value)
            elif user.op == "output" and user.graph in self._calls:
                (results,) = user.args
                for item in self._calls[user.graph].users:
                    if item.target is not operator.getitem:
                        yield item, item
                    elif results[item.args[1]] is node:
                        yield from self.of(item)
            else:
                yield node, user
