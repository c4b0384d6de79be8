"""Through which operations of a graph gradients go, and what these operations save for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..door.tracer import log
from .fake_runs import number_of
from .operations import autocasts, name_of, written_nodes
from .writes import bodies_of, fakes_of, memory_of, operations, written_by


def memory_written(module: torch.fx.GraphModule, node: torch.fx.Node) -> set[int]:
    """The memory that the operation may write to, or that the bodies may which it calls."""
    bodies = bodies_of(module, node)
    inner = [each for body in bodies for each in operations(body)]
    return set().union(*map(written_by, inner)) if bodies else written_by(node)


def recorded(module: torch.fx.GraphModule, is_enabled: bool) -> set[torch.fx.Node]:
    """The operations that autograd records, and through which the gradients of the graph's results go.

    is_enabled: are gradients recorded where the graph begins?
    """
    found: set[torch.fx.Node] = set()
    off, output = _not_recording(module.graph, is_enabled), module.graph.output_node()
    wanted = {*output.all_input_nodes}
    memory = memory_of([*wanted, *(node for node in module.graph.nodes if not node.op.startswith("call"))])
    for node in reversed([*module.graph.nodes]):
        if not node.op.startswith("call") or node in off or not _has_gradient(node):
            continue
        if node in wanted or not memory.isdisjoint(memory_of([node]) | memory_written(module, node)):
            found.add(node)
            wanted.update(node.all_input_nodes)
            memory |= memory_of(node.all_input_nodes)
    return found


def _not_recording(graph: torch.fx.Graph, is_enabled: bool) -> set[torch.fx.Node]:
    off = set()
    for node in graph.nodes:
        if name_of(node) == "_set_grad_enabled":
            is_enabled = bool(node.args[0])
        if not is_enabled:
            off.add(node)
    return off


def may_record(graph: torch.fx.Graph, node: torch.fx.Node) -> bool:
    """May gradients be enabled where the operation stands?"""
    may_begin_so = torch.is_grad_enabled() or any(name_of(each) == "_set_grad_enabled" for each in graph.nodes)
    return node not in _not_recording(graph, may_begin_so)


def _has_gradient(node: torch.fx.Node) -> bool:
    """Has what it gives one, or what it writes to?  Of an operation with a body only the items have values."""
    given = [node] if "example_value" in node.meta else [*node.users]
    return any(fake.requires_grad for each in (*given, *written_nodes(node)) for fake in fakes_of(each))


def saved_by(node: torch.fx.Node) -> tuple[set[torch.fx.Node], bool] | None:
    """The operands, and the node itself, whose memory the operation saves for its gradient; does it save other memory?

    It is run on tensors without data, under the autocasts that the graph has entered.  None: it cannot be.
    """
    saved: set[int] = set()
    written = written_nodes(node)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch._subclasses.FakeTensorMode())
            stack.enter_context(torch.enable_grad())
            made = {each: _without_data(each, each in written) for each in node.all_input_nodes}
            for entered in autocasts(node):
                stack.enter_context(torch.autocast(*entered))
            stack.enter_context(
                torch.autograd.graph.saved_tensors_hooks(lambda each: saved.update(_memory(each)), lambda each: each)
            )
            args, options = torch.fx.node.map_arg((node.args, node.kwargs), made.__getitem__)
            target: Any = getattr(torch.Tensor, node.target) if isinstance(node.target, str) else node.target
            given = target(*args, **options)
    except Exception as error:
        log.debug("not known what %s saves: %s", node, error)
        return None
    owners = {memory: each for each, value in made.items() for memory in _memory(value)}
    results = {memory for value in tree_leaves(given) for memory in _memory(value)} - owners.keys()
    found = {owners[memory] for memory in saved if memory in owners} | ({node} if saved & results else set())
    return found, not saved <= owners.keys()


def may_save(node: torch.fx.Node, memory: set[int]) -> bool:
    """May the operation have saved the memory for its gradient?  Then a write to it is an error in eager."""
    if memory.isdisjoint(memory_of([node]) | memory_of(node.all_input_nodes)):
        return False
    saved = saved_by(node)
    return saved is None or not memory.isdisjoint(memory_of(saved[0]))


def _without_data(node: torch.fx.Node, is_written: bool) -> Any:
    """A tensor, or number, like the node's; one that is written to is no leaf, as no leaf with a gradient can be."""
    value = node.meta["example_value"]
    if not isinstance(value, torch.Tensor):
        return number_of(value)
    sizes, strides = map(number_of, value.shape), map(number_of, value.stride())
    made = torch.empty_strided([*sizes], [*strides], dtype=value.dtype, device=value.device)
    made.requires_grad_(value.requires_grad)
    return made.clone() if is_written else made


def _memory(value: Any) -> Iterator[int]:
    if isinstance(value, torch.Tensor):
        yield value.untyped_storage()._cdata
