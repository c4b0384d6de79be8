"""What the tensor at hand is known to hold while Dynamo traces, and the guard that keeps the compiled code to it.

Known are tensors that the traced code makes of Python's numbers; small tensors that a module holds, buffers among
them; and what plain operations make of the frame's inputs, if that is small.  The operations of the graph are run on
the real tensors, on their device, so the value is the one that eager would read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...engine.attempt import refusals
from ...engine.attempt.as_written import is_as_written
from ...engine.attempt.compilation import Compilation
from ...engine.attempt.refusals import record
from ...engine.attempt.restart import expect_success_of
from ...engine.door.question import question
from ...engine.door.tracer import Trace, log
from ...engine.door.variables import PLAIN_TENSORS, Variable, fake_of, has_fixed_sizes, tensor_node
from ...engine.epilogue.deferral import is_autocast
from ...engine.facts.operations import is_cheap, only_writes
from ...engine.facts.writes import are_apart, storages_of, written_by
from ...engine.numbers.captured import DISTINCT, Captured, Denied
from ...engine.numbers.symbolic_constants import constant_of
from ..defer.codes import NEEDS_ITS_BREAKS, NO_EPILOGUE
from .codes import NOT_TRACED, SIZE_OTHERWISE, UNKNOWN_DATA, WHILE_OF_AN_INPUT, WRITTEN_IN_PLACE
from .traced_specialised import SMALL, Making, Unknown, guard, is_held_by_module, is_named, readable

MOST_CONSTANTS = 1024  # of a tensor, in the trace
_MOST_OPERATIONS = 256
_MOST_ELEMENTS = 2**20  # of a tensor of which something is computed
_DENIED = {Denied.BY_TORCH: NO_EPILOGUE, Denied.BY_FAILURE: SIZE_OTHERWISE, Denied.BY_WORTH: NOT_TRACED}


@dataclass
class Asked:
    """What an attempt has asked for last.  refusal: the code of why it is not known; root: the tensor."""

    refusal: str = UNKNOWN_DATA
    root: torch.fx.Node | None = None


_NONE: tuple[Any, ...] | None = None


@question(otherwise=_NONE)
def known_elements(trace: Trace, tensor: Variable, of_inputs: bool = True) -> tuple[Any, ...] | None:
    """The elements of the tensor, in order, where they are known and not too many for the trace.

    of_inputs: may they be known from the inputs of the frame, beside those that a module holds or somebody has named?
    """
    return elements_of(trace, tensor, _any if of_inputs else _is_held_or_named)


def _any(_leaf: torch.fx.Node) -> bool:
    return True


def _is_held_or_named(leaf: torch.fx.Node) -> bool:
    return is_held_by_module(leaf) or is_named(leaf)


def elements_of(
    trace: Trace, tensor: Variable, may_be_of: Callable[[torch.fx.Node], bool] = _any
) -> tuple[Any, ...] | None:
    """The same, asked by the engine.  may_be_of: may they be known from that input of the frame?"""
    fake = fake_of(tensor)
    trace.compilation.of(Asked).root = tensor_node(tensor)
    trace.compilation.of(Captured).denied, trace.compilation.of(Asked).refusal = None, UNKNOWN_DATA
    if not has_fixed_sizes(fake) or not 0 < fake.numel() <= MOST_CONSTANTS:
        return None
    parts = _text(trace, tensor, may_be_of).split()
    if not parts:
        return None
    expect_success_of(trace.compilation)
    if fake.dtype is torch.bool:
        return tuple(part == "True" for part in parts)
    return tuple(map(float if fake.dtype.is_floating_point else int, parts))


def _text(trace: Trace, tensor: Variable, may_be_of: Callable[[torch.fx.Node], bool]) -> str:
    """The elements, parted by spaces; "" where they are not known."""
    compilation = trace.compilation
    asked = compilation.of(Asked)
    if is_as_written(trace):
        asked.refusal = NEEDS_ITS_BREAKS
        return ""
    root = tensor_node(tensor)
    try:
        constant = constant_of(tensor)
        if constant is not None:
            return readable(constant)
        making = _making(compilation, root)
        if not all(map(may_be_of, making.leaves)):
            raise Unknown(WHILE_OF_AN_INPUT)
        value = making.result()
        guard(compilation, making, value)
    except Unknown as unknown:
        asked.refusal = unknown.args[0]
        return ""
    return value


@question(otherwise=False)
def are_distinct_captured(trace: Trace, tensor: Variable) -> bool:
    """Is how many distinct elements it has a captured size, though an input may be small enough to know its contents?

    To know them is a compilation for each contents: they are asked where nothing else will do.
    """
    fake = fake_of(tensor)
    is_captured = trace.compilation.allows(DISTINCT)
    trace.compilation.of(Captured).distinct |= is_captured and has_fixed_sizes(fake) and fake.numel() <= SMALL
    return is_captured


@question(otherwise=None)
def refuse(trace: Trace) -> None:
    """Remember that the statement is traced as it was written, because what was asked for last is not known."""
    compilation = trace.compilation
    denied = compilation.of(Captured).denied
    refusals.decided.discard(trace.place[:2])
    record(_DENIED[denied] if denied else compilation.of(Asked).refusal)


@question(otherwise=None)
def note_decision(trace: Trace) -> None:
    """Remember that the test of the statement is decided while tracing, with a guard, whatever was refused before."""
    refusals.decided.add(trace.place[:2])


def _making(compilation: Compilation, root: torch.fx.Node) -> Making:
    """How the graph makes the tensor, writes to it and to its aliases included; raises Unknown."""
    found: set[torch.fx.Node] = set()
    waiting = [root]
    while waiting:
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            _check(node)
            found.add(node)
            if len(found) > _MOST_OPERATIONS:
                raise Unknown(UNKNOWN_DATA)
            waiting += node.all_input_nodes
        waiting += _writes(compilation, root.graph, found)
    ordered = [node for node in root.graph.nodes if node in found]
    if is_autocast() and any(map(_is_floating, ordered)):
        raise Unknown(UNKNOWN_DATA)  # a guard would compute it outside of the region
    leaves = [node for node in ordered if node.op == "placeholder"]
    return Making(root, leaves, [node for node in ordered if node.op != "placeholder"])


def _check(node: torch.fx.Node) -> None:
    """Raise Unknown unless it is a cheap operation, or an input, on tensors that are small."""
    if node.op == "placeholder":
        _check_leaf(node)
    elif not is_cheap(node) and not only_writes(node):
        log.debug("not known: %s", node.format_node())
        raise Unknown(UNKNOWN_DATA)
    if not (_is_small(node.meta.get("example_value")) or only_writes(node)):
        raise Unknown(UNKNOWN_DATA)


def _is_small(value: Any) -> bool:
    """Is it a number, or a tensor of fixed sizes and not too many elements, or are they?"""
    if isinstance(value, (tuple, list)):
        return all(map(_is_small, value))
    if isinstance(value, torch.Tensor):
        return has_fixed_sizes(value) and value.numel() <= _MOST_ELEMENTS
    return type(value) in (int, float, bool)


def _is_floating(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _writes(compilation: Compilation, graph: torch.fx.Graph, tensors: set[torch.fx.Node]) -> Iterator[torch.fx.Node]:
    """The operations, other than these, that write to one of the tensors or to an alias; raises Unknown."""
    storages = {storage for node in tensors for storage in storages_of(node)}
    writes = [(node, written) for node in graph.nodes if (written := written_by(node))]
    for node, written in writes:
        if not written.isdisjoint(storages):
            if not only_writes(node):
                log.debug("perhaps written to: %s", node.format_node())
                raise Unknown(WRITTEN_IN_PLACE)
            if node not in tensors:
                yield node
    if not are_apart(compilation, storages, {storage for _, written in writes for storage in written}):
        raise Unknown(WRITTEN_IN_PLACE)  # what is run is run on copies, which share no memory


def _check_leaf(node: torch.fx.Node) -> None:
    """Raise Unknown unless the input of the graph is a plain tensor that holds data and has no gradient."""
    argument = node.meta.get("grapharg")
    tensor: Any = argument.example if argument is not None and argument.is_tensor else None
    if (
        type(tensor) not in PLAIN_TENSORS
        or tensor.requires_grad
        or tensor.layout is not torch.strided
        or tensor.device.type == "meta"
        or (is_held_by_module(node) and tensor.numel() > SMALL)
    ):
        raise Unknown(UNKNOWN_DATA)
