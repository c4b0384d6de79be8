"""Which memory the operations of a graph write to, and whether inputs of the graph share memory.

The fake tensors that stand for a tensor and its views share one storage.  Those of two inputs need not, though the
inputs themselves do: that is looked up in the real ones, and the compiled code is guarded to what was found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import TensorWeakRef

from ..attempt.compilation import Compilation
from ..door import frame_guards
from ..door.tracer import log
from .operations import values_of, written_nodes


def operations(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The nodes of the graph in order, those of the bodies that an operation calls before the operation itself."""
    for node in module.graph.nodes:
        bodies = bodies_of(module, node)
        for body in bodies:
            yield from operations(body)
        if not bodies:
            yield node


def bodies_of(module: torch.fx.GraphModule, node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    """The graphs that the operation calls, as an activation checkpoint does."""
    named = node.all_input_nodes if isinstance(node.target, torch._ops.HigherOrderOperator) else ()
    operands = [getattr(module, str(operand.target), None) for operand in named if operand.op == "get_attr"]
    return [operand for operand in operands if isinstance(operand, torch.fx.GraphModule)]


def written_by(node: torch.fx.Node) -> set[int]:
    """The memory that the operation may write to; all that it is given, where nothing is known of it."""
    return memory_of(written_nodes(node))


def fakes_of(node: torch.fx.Node) -> Iterator[torch.Tensor]:
    """The fake tensors that stand for what the node gives."""
    return (value for value in values_of(node) if isinstance(value, torch.Tensor))


def dimensions_of(node: torch.fx.Node) -> int:
    """How many dimensions has what the node gives?  The most, where it gives several tensors."""
    return max((fake.dim() for fake in fakes_of(node)), default=0)


def storages_of(node: torch.fx.Node) -> Iterator[int]:
    """What tells the memory of the tensors that the node stands for; aliases have the same."""
    for fake in fakes_of(node):
        yield from memory_of_fake(fake)


def memory_of_fake(fake: torch.Tensor) -> set[int]:
    """What tells the memory of the tensor that it stands for; nothing where it has none of its own."""
    parts = _without_wrappers(fake)
    return {part.untyped_storage()._cdata for part in parts if part.layout is torch.strided}


def _without_wrappers(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors in a wrapper, whose memory is its own: of a function transform (`torch.func.grad`) or of a class."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if not is_traceable_wrapper_subclass(tensor):
        yield tensor
        return
    for name in tensor.__tensor_flatten__()[0]:
        part = getattr(tensor, name)
        if isinstance(part, torch.Tensor):
            yield from _without_wrappers(part)


def memory_of(nodes: Iterable[torch.fx.Node]) -> set[int]:
    """What tells the memory of the tensors that any of the nodes stands for."""
    return {storage for node in nodes for storage in storages_of(node)}


def memory_of_inputs(graph: torch.fx.Graph) -> set[int]:
    """The memory that is older than the graph."""
    return memory_of(node for kind in ("placeholder", "get_attr") for node in graph.find_nodes(op=kind))


def memory_of_inference(graph: torch.fx.Graph) -> set[int]:
    """What tells the memory of the inputs that were made in inference mode; of a fake tensor that cannot be told."""
    inputs = [node for node in graph.find_nodes(op="placeholder") if node.meta.get("grapharg") is not None]
    return memory_of(node for node in inputs if getattr(example_of(node), "is_inference", bool)())


def written_inputs(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """What the graph is given that operations of it write to."""
    written = {memory for node in operations(module) for memory in written_by(node)}
    inputs = module.graph.find_nodes(op="placeholder")
    return [node for node in inputs if not written.isdisjoint(storages_of(node))]


def has_plain_memory(tensor: Any) -> bool:
    """Is it a tensor without ways of its own, of which no two elements share memory?

    A stride that is a symbol is not 0, which Dynamo takes for a constant.
    """
    if not isinstance(tensor, torch.Tensor) or is_traceable_wrapper_subclass(tensor) or tensor.is_quantized:
        return False
    if tensor.layout is not torch.strided:
        return False
    sizes = [size for size, step in zip(tensor.shape, tensor.stride(), strict=True) if type(step) is int and step == 0]
    return all(type(size) is int and size <= 1 for size in sizes)


def are_apart(compilation: Compilation, relied_on: set[int], written: set[int]) -> bool:
    """Do the inputs of the graph in `relied_on` share no memory with others that are written to?

    If so, the code that is being compiled will run only where that is so.
    """
    arguments = {node: node.meta.get("grapharg") for node in compilation.output.graph.find_nodes(op="placeholder")}
    inputs = [node for node, argument in arguments.items() if argument is not None and argument.is_tensor]
    changed = [node for node in inputs if not written.isdisjoint(storages_of(node))]
    kept = [node for node in inputs if not relied_on.isdisjoint(storages_of(node))] if changed else []
    pairs = [(one, other) for one in kept for other in changed if one is not other]
    for one, other in pairs:
        if not _share_nothing(example_of(one), example_of(other)):
            log.debug("inputs share memory: %s, %s", one, other)
            return False
    return compilation.output.export or _guard(compilation, pairs)


def _guard(compilation: Compilation, pairs: Sequence[tuple[torch.fx.Node, torch.fx.Node]]) -> bool:
    """Let the code run only where the two inputs of each pair share no memory; False if no guard can tell."""
    for pair in set(pairs):
        sources = [node.meta["grapharg"].source for node in pair]
        if frame_guards.inputs_at(sources, compilation) is None:
            return False
        frame_guards.install(compilation, pair, sources, _share_nothing, "they share no memory")
    return True


def _share_nothing(one: Any, other: Any) -> bool:
    pairs = itertools.product(_ranges_of(one), _ranges_of(other))
    return all(first.stop <= second.start or second.stop <= first.start for first, second in pairs)


def example_of(node: torch.fx.Node) -> Any:
    """The real tensor that an input of the graph was traced with."""
    tensor = node.meta["grapharg"]._example
    return tensor() if isinstance(tensor, TensorWeakRef) else tensor


def _ranges_of(tensor: Any) -> Iterator[range]:
    for part in _without_wrappers(tensor) if isinstance(tensor, torch.Tensor) else ():
        if part.layout is torch.strided and part.device.type != "meta":
            storage = part.untyped_storage()
            yield range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())


def stay(nodes: Iterable[torch.fx.Node], every: Iterable[torch.fx.Node]) -> bool:
    """Has nothing written to the memory of those?"""
    memory = memory_of(nodes)
    return all(memory.isdisjoint(written_by(node)) for node in every)
