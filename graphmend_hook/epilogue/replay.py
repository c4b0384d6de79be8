"""What a graph that failed had computed by then: it runs once more, operation by operation, up to where it fails.

A guard protects what comes after it.  A compiled graph may run that first, or in one kernel with the guard's condition,
and what fails then has no output to look at.  So the graph as Dynamo captured it is kept, and after a failure
interpreted in the order of the program, on copies of its inputs; the conditions met on the way are what eager met.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import torch

log = logging.getLogger("graphmend_hook")
Nodes = list[tuple[torch.fx.Node, list[torch.fx.Node]]]
Condition = tuple[torch.Tensor, list[torch.Tensor]]  # a predicate (), and the tensors that its effect shows


class _Last(threading.local):
    prepared: Replay | None = None
    met: dict[int, Condition] | None = None


_last = _Last()


class Replay:
    """A captured graph, and its nodes that are conditions: (predicate, tensors), by key."""

    def __init__(
        self, module: torch.fx.GraphModule, conditions: list[tuple[torch.fx.Node, list[torch.fx.Node]]]
    ) -> None:
        copied: dict[torch.fx.Node, torch.fx.Node] = {}
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(module.graph, copied))
        self._module = torch.fx.GraphModule(module, graph)
        self._conditions = {
            key: (copied[predicate], [copied[tensor] for tensor in tensors])
            for key, (predicate, tensors) in enumerate(conditions)
            if predicate in copied and all(tensor in copied for tensor in tensors)
        }

    def run(self, *arguments: Any) -> None:
        """Run on copies of `arguments`; `conditions_met` has the result."""
        wanted = {node for predicate, tensors in self._conditions.values() for node in (predicate, *tensors)}
        interpreter = _Recorder(self._module, wanted)
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                interpreter.run(*[_copied(argument) for argument in arguments])
        except Exception as error:  # the failure itself, met again
            log.debug("the graph failed at %s", error)
        seen = interpreter.seen
        _last.met = {
            key: (seen[predicate], [seen[tensor] for tensor in tensors])
            for key, (predicate, tensors) in self._conditions.items()
            if predicate in seen and all(tensor in seen for tensor in tensors)
        }


class _Recorder(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, module: torch.fx.GraphModule, wanted: set[torch.fx.Node]) -> None:
        super().__init__(module)
        self.extra_traceback = False
        self._wanted = wanted
        self.seen: dict[torch.fx.Node, torch.Tensor] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n in self._wanted:
            self.seen[n] = value.clone()
        return value


def _copied(argument: Any) -> Any:
    return argument.detach().clone() if isinstance(argument, torch.Tensor) else argument


def prepare(module: torch.fx.GraphModule, conditions: Nodes) -> None:
    """Keep the graph that is about to be compiled on this thread; `prepared` takes it."""
    _last.prepared = Replay(module, conditions)


def prepared() -> Callable[..., None] | None:
    """What runs the graph that was kept since the last call on this thread.

    It is called from code that runs under Dynamo, which would compile it.
    """
    taken, _last.prepared = _last.prepared, None
    return None if taken is None else torch.compiler.disable(taken.run)


def conditions_met() -> dict[int, Condition]:
    """The conditions that the last replay on this thread met, once."""
    met, _last.met = _last.met, None
    return met or {}
