"""What a graph that failed had computed by then: it runs once more, operation by operation, up to where it fails.

A guard protects what comes after it.  A compiled graph may run that first, or in one kernel with the guard's condition,
and what fails then has no output to look at.  So the graph as Dynamo captured it is kept, and after a failure
interpreted in the order of the program, on copies of its inputs; the conditions met on the way are what eager met.

A graph that cannot run twice and give the same is not replayed: one that writes to its inputs or has operations of
others, whose effects are unknown.  What is met after a random number is drawn counts for nothing: it is another number.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch._guards import CompileContext

from ..runtime.writes import only_computes

log = logging.getLogger("graphmend_hook")
# By number: the node of a condition, and those of the values that its effect shows, by their place among them.
Nodes = list[tuple[torch.fx.Node, Mapping[int, torch.fx.Node]]]
Condition = tuple[torch.Tensor, dict[int, Any]]  # a predicate (), and the values by their place


class _Last(threading.local):
    prepared: tuple[object, Replay] | None = None
    met: dict[int, Condition] | None = None


_last = _Last()


class Replay:
    """A captured graph, and its nodes that are conditions, by number."""

    def __init__(self, module: torch.fx.GraphModule, conditions: Nodes) -> None:
        copied: dict[torch.fx.Node, torch.fx.Node] = {}
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(module.graph, copied))
        self._module = torch.fx.GraphModule(module, graph)
        sizes = {_symbol(node): copied[node] for node in module.graph.find_nodes(op="placeholder") if _symbol(node)}

        def kept(node: torch.fx.Node) -> torch.fx.Node | None:
            return copied.get(node) or sizes.get(_symbol(node))  # Dynamo takes away what only reads a size

        found = [
            (kept(predicate), {place: kept(node) for place, node in shown.items()}) for predicate, shown in conditions
        ]
        self._conditions = {
            key: (predicate, {place: node for place, node in shown.items() if node is not None})
            for key, (predicate, shown) in enumerate(found)
            if predicate is not None
        }

    def run(self, *arguments: Any) -> None:
        """Run on copies of `arguments`; `conditions_met` has the result."""
        if not isinstance(sys.exc_info()[1], Exception) or _share_memory(arguments):
            return
        wanted = {node for predicate, shown in self._conditions.values() for node in (predicate, *shown.values())}
        interpreter = _Recorder(self._module, wanted)
        try:
            with torch.no_grad(), torch.random.fork_rng(range(torch.cuda.device_count())):
                interpreter.run(*[_copied(argument) for argument in arguments])
        except Exception as error:  # the failure itself, met again
            log.debug("the graph failed at %s", error)
        seen = interpreter.seen
        _last.met = {
            key: (seen[predicate], {place: seen[node] for place, node in shown.items() if node in seen})
            for key, (predicate, shown) in self._conditions.items()
            if predicate in seen
        }


class _Recorder(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, module: torch.fx.GraphModule, wanted: set[torch.fx.Node]) -> None:
        super().__init__(module)
        self.extra_traceback = False
        self._wanted = wanted
        self._random = _random_state()
        self.seen: dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n in self._wanted and all(map(torch.equal, self._random, _random_state())):
            self.seen[n] = value.clone() if isinstance(value, torch.Tensor) else value
        return value


def _random_state() -> list[torch.Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ())]


def _copied(argument: Any) -> Any:
    return argument.detach().clone() if isinstance(argument, torch.Tensor) else argument


def _share_memory(arguments: tuple[Any, ...]) -> bool:
    storages = [_storage(argument) for argument in arguments if isinstance(argument, torch.Tensor)]
    return len(storages) > len(set(storages))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)


def prepare(module: torch.fx.GraphModule, conditions: Nodes) -> None:
    """Keep the graph that is about to be compiled on this thread, if it can run twice; `prepared` takes it."""
    _last.prepared = (CompileContext.try_get(), Replay(module, conditions)) if _is_repeatable(module.graph) else None


def prepared() -> Callable[..., None] | None:
    """What runs the graph that was kept in this compilation.

    It is called from code that runs under Dynamo, which would compile it.
    """
    taken, _last.prepared = _last.prepared, None
    if taken is None or taken[0] is not CompileContext.try_get():  # that of a compilation that failed
        return None
    run: Callable[..., None] = torch.compiler.disable(taken[1].run)
    return run


def _is_repeatable(graph: torch.fx.Graph) -> bool:
    """Has it no operation of others, and no write to an input?  Fake tensors share storages as the real ones do."""
    inputs = set(map(_storage, _tensors(graph.find_nodes(op="placeholder"))))
    for node in graph.nodes:
        if not node.op.startswith("call"):
            continue
        if getattr(node.target, "namespace", "aten") not in ("aten", "prims"):
            return False
        if not only_computes(node) and any(_storage(fake) in inputs for fake in _tensors(node.all_input_nodes)):
            return False
    return True


def _symbol(node: torch.fx.Node) -> str:
    """The name of a symbolic number, else ""."""
    value = node.meta.get("example_value")
    return str(value) if isinstance(value, torch.SymInt) else ""


def _tensors(nodes: Iterable[torch.fx.Node]) -> list[torch.Tensor]:
    fakes = [node.meta.get("example_value") for node in nodes]
    return [fake for fake in fakes if isinstance(fake, torch.Tensor)]


def conditions_met() -> dict[int, Condition]:
    """The conditions that the last replay on this thread met, once."""
    met, _last.met = _last.met, None
    return met or {}
