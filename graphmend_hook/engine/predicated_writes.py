"""Writes of a region to memory that is older than it: they are made where the region is taken.

``x.mul_(2)`` becomes ``x.copy_(torch.where(taken, x.clone().mul_(2), x))``: the same memory, so that views and aliases
see it, in the region and behind it, and where the region is not taken they see what was there.

An input is not written to where no region was taken that writes, not even with what it holds: its memory may be
read-only, and autograd, which counts writes, refuses to use what it has saved if there was one since.  So the graph is
given a copy of it, and what the copy holds is written back if one was taken.  For the same reason what an earlier
operation of the graph has saved is not written to in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..source.tensor_ops import KEEPING_STATISTICS, STORING, operation
from .attempt.compilation import Compilation
from .door.tracer import Trace
from .door.variables import bytes_of, is_unbacked, most_copied, without_hooks
from .facts.gradient_flow import may_record, may_save, recorded
from .facts.operations import facts_of, is_of_torch, name_of, only_writes_memory, values_of, written_nodes
from .facts.writes import (
    are_apart,
    fakes_of,
    has_plain_memory,
    memory_of,
    memory_of_fake,
    memory_of_inference,
    memory_of_inputs,
    operations,
    storages_of,
    written_by,
)
from .graph_end.order import Change, Compiler, Verdict, Wrapper
from .predicates import read
from .region import Region, Regions, memory_made
from .shelter import add, taken_at


@dataclass(frozen=True)
class _Write:
    """One write.

    region: in which it stands; taken: where that is; node: what writes; is_recorded: may gradients be enabled there?
    why: what the report says if it is given up.
    """

    region: Region
    taken: torch.fx.Node
    node: torch.fx.Node
    is_recorded: bool
    why: tuple[str, ...]


@dataclass
class _Writes:
    """Those of an attempt.

    places: the inputs that nothing else writes to, as positions, and which of the conditions say that one does.
    conditions: what the graph gives for that; count: how many results it gives before.
    """

    found: list[_Write] = field(default_factory=list)
    places: list[tuple[int, list[int]]] = field(default_factory=list)
    conditions: list[torch.fx.Node] = field(default_factory=list)
    count: int = 0


def write_to_copies(trace: Trace, node: torch.fx.Node) -> list[torch.fx.Node]:
    """Let the operation, if it keeps statistics, write to copies of them; gives it, and what writes those back.

    What it writes to memory that the region has made stays as it is.
    """
    written = written_nodes(node) if name_of(node) in KEEPING_STATISTICS and is_of_torch(node) else []
    if not all(has_plain_memory(fake) for each in written for fake in fakes_of(each)):
        return [node]
    if not written or memory_of(written) <= memory_made(trace.compilation.of(Regions).open[-1].nodes(trace)):
        return [node]
    copies = {kept: add(trace, node, torch.clone, kept) for kept in written}
    node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: copies.get(each, each))
    last, made = node, [*copies.values(), node]
    for kept, copy in copies.items():
        with trace.graph.inserting_after(last):
            last = trace.graph.call_method("copy_", (kept, copy))
        last.meta["example_value"] = kept.meta["example_value"]
        made.append(last)
    return made


def may_be_predicated(trace: Trace, node: torch.fx.Node) -> bool:
    """Does the operation write to its first operand alone, and may that be done where its region is taken?"""
    written = written_nodes(node)
    if not (only_writes_memory(node) and is_of_torch(node)):
        return False
    if len(written) != 1 or [*node.args[:1]] != written or trace.compilation.is_saved:
        return False
    (target,), operands = fakes_of(written[0]), [fake for each in node.all_input_nodes for fake in fakes_of(each)]
    if not has_plain_memory(target) or is_unbacked(target.shape):
        return False
    if not all(value is None or value is target for value in values_of(node)):
        return False
    if not _is_apart(trace, node, written[0]):
        return False
    if any(fake.requires_grad for fake in operands) and may_record(trace.graph, node):
        is_alone = all(fake is target or not fake.requires_grad for fake in operands)
        is_older = not memory_of(written).isdisjoint(memory_of_inputs(trace.graph))
        if not is_alone or is_older or not target.is_floating_point():
            return False
    is_frozen = not memory_of(written).isdisjoint(memory_of_inference(trace.graph))
    return torch.is_inference_mode_enabled() or not is_frozen


def _is_apart(trace: Trace, node: torch.fx.Node, target: torch.fx.Node) -> bool:
    """Does it read the memory that it writes to nowhere else than where it writes?  Eager refuses what overlaps."""
    memory, (place,) = memory_of([target]), fakes_of(target)
    others = [fake for operand in node.all_input_nodes if operand is not target for fake in fakes_of(operand)]
    shared = [fake for fake in others if not memory.isdisjoint(memory_of_fake(fake))]
    if shared and name_of(node) == "setitem":
        if len(node.all_input_nodes) > 2:
            return False  # a mask
        with without_hooks(), trace.translator.fake_mode:
            place = place[node.args[1]]
    return all(_layout(fake) == _layout(place) for fake in shared)


def _layout(fake: torch.Tensor) -> tuple[str, ...]:
    return str(fake.storage_offset()), str(fake.shape), str(fake.stride()), str(fake.dtype)


def is_large(node: torch.fx.Node) -> bool:
    """Would its copies cost more than is spent on what may not be needed?"""
    (target,) = fakes_of(written_nodes(node)[0])
    return bytes_of(target) > most_copied(target.device)


def predicate(trace: Trace, node: torch.fx.Node, why: tuple[str, ...]) -> bool:
    """Let the operation write only where all open regions are taken; False where that is not known.

    why: what the report says of the region if it has to be given up for it.
    """
    regions, compilation = trace.compilation.of(Regions), trace.compilation
    (target,), taken = written_nodes(node), taken_at(trace, node)
    (fake,) = fakes_of(target)
    if taken is None or taken.meta["example_value"].device != fake.device:
        return False
    is_recorded = may_record(trace.graph, node)
    may_be_nan = is_recorded and fake.requires_grad and not _hands_zeros_on(node)
    # A shelter (`shelter`) where zeros from above could become NaN.
    copy = add(trace, node, torch.where, taken, target, 0.5) if may_be_nan else add(trace, node, torch.clone, target)
    with trace.graph.inserting_before(node):
        written = trace.graph.node_copy(node, lambda operand: copy if operand is target else operand)
    written.meta["example_value"] = None if node.meta.get("example_value") is None else copy.meta["example_value"]
    selected = add(trace, node, torch.where, taken, copy, target)
    node.op, node.target, node.args, node.kwargs = "call_method", "copy_", (target, selected), {}
    node.meta["example_value"] = fake
    regions.predicated.add(node)
    compilation.of(_Writes).found.append(_Write(regions.open[-1], taken, node, is_recorded, why))
    compilation.judge(Verdict.WRITTEN, _judge)
    compilation.change(Change.WRITES, _give_conditions)
    compilation.wrap_compiler(Wrapper.COPIES, _with_copies)
    return True


def _hands_zeros_on(node: torch.fx.Node) -> bool:
    name = name_of(node).rstrip("_")
    return operation(name).is_smooth or name in STORING


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """May autograd have kept what is written to, as it was before; or would the write be seen by gradients, or aliases?

    AOTAutograd gives zeros to an input that is written to by a detached alias, also where eager gives no gradient.
    """
    order = {node: place for place, node in enumerate(operations(module))}
    trained, inputs = recorded(module, True), module.graph.find_nodes(op="placeholder")
    used = {operand for node in trained for operand in node.all_input_nodes}
    unused = memory_of(node for node in inputs if node not in used and any(f.requires_grad for f in fakes_of(node)))
    results = memory_of(module.graph.output_node().all_input_nodes)
    uncertain = set[int]().union(*(written_by(node) for node in order if not _writes_for_certain(node)))
    predicated = {write.node for write in compilation.of(_Writes).found}
    always = set[int]().union(*(written_by(node) for node in order if node not in predicated))
    for write in compilation.of(_Writes).found:
        memory = written_by(write.node)
        older = [node for node in inputs if not memory.isdisjoint(storages_of(node))]
        others = memory_of(node for node in inputs if node not in older)
        # An input that nothing else writes to is handed in as a copy (`_give_conditions`): what the graph gives of the
        # same memory would be an alias of the copy.
        is_given = not memory.isdisjoint(results) and memory.isdisjoint(always)
        has_alias = len(older) > 1 or not all(map(_is_dense, older)) or is_given
        is_kept = any(order[node] < order[write.node] and may_save(node, memory) for node in trained)
        is_seen = write.is_recorded and not memory.isdisjoint(unused)
        may_be_alone = not memory.isdisjoint(uncertain)  # an operation that may write nothing stands beside it
        if is_kept or is_seen or (older and (has_alias or may_be_alone or not are_apart(compilation, others, memory))):
            write.region.give_up(compilation, write.why)


def _writes_for_certain(node: torch.fx.Node) -> bool:
    """Does the operation write to each element, or to those at places that are known?"""
    if name_of(node) == "setitem":
        return len(node.all_input_nodes) == 1 + isinstance(node.args[2], torch.fx.Node)
    name = name_of(node).rstrip("_")
    return name in STORING or (facts_of(node).is_pointwise and not name.startswith("masked"))


def _is_dense(node: torch.fx.Node) -> bool:
    """Has a copy of it the same strides?"""
    return all(torch._prims_common.is_non_overlapping_and_dense_or_false(fake) for fake in fakes_of(node))


def _give_conditions(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let the graph hand out whether regions were taken that write, for inputs to which nothing else writes."""
    writes = compilation.of(_Writes)
    by_node = {write.node: write.taken for write in writes.found}
    writers = [(node, written) for node in operations(module) if (written := written_by(node))]
    for place, given in enumerate(module.graph.find_nodes(op="placeholder")):
        memory = {*storages_of(given)}
        writing = [node for node, written in writers if not memory.isdisjoint(written)]
        if writing and by_node.keys() >= {*writing}:
            taken = dict.fromkeys(by_node[node] for node in writing)
            writes.conditions += [each for each in taken if each not in writes.conditions]
            writes.places.append((place, [writes.conditions.index(each) for each in taken]))
    output = module.graph.output_node()
    (results,) = output.args
    assert isinstance(results, (tuple, list))
    writes.count = len(results)
    output.args = ((*results, *writes.conditions),)


def _with_copies(compilation: Compilation, _module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    writes = compilation.of(_Writes)

    def compile_on_copies(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        return _on_copies(compiler(*args, **kwargs), writes.places, writes.count)

    return compile_on_copies if writes.conditions else compiler


def _on_copies(graph: Callable[..., Any], places: Sequence[tuple[int, list[int]]], count: int) -> Callable[..., Any]:
    """`graph`, which writes to copies of inputs; an input gets what its copy holds if a region was taken that writes.

    places: positions of inputs, and those of their conditions behind the first `count` outputs.
    """

    def call(*inputs: Any) -> Any:
        given = [*inputs]
        for place, _ in places:
            given[place] = inputs[place].clone()
        found = graph(*given)
        taken = read(found[count:])
        for place, conditions in places:
            if any(taken[condition] for condition in conditions):
                with torch.no_grad():
                    inputs[place].copy_(given[place])
        return found[:count]

    return call
