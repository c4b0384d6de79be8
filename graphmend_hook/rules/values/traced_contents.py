"""What the tensor at hand is known to hold while Dynamo traces, and the guard that keeps the compiled code to it.

Known are tensors that the traced code makes of Python's numbers; small tensors that a module holds, buffers among
them; and what plain operations make of the frame's inputs, if that is small.  The operations of the graph are run on
the real tensors, on their device, so the value is the one that eager would read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import torch

from ...dynamo import guarded, queue
from ...dynamo.capture import Captured, Denied
from ...dynamo.compilation import Compilation
from ...dynamo.guarded import text_of
from ...dynamo.operations import is_cheap, only_writes
from ...dynamo.place import is_autocast
from ...dynamo.question import question
from ...dynamo.restart import is_as_written
from ...dynamo.trace import Trace, log, record
from ...dynamo.variables import Variable, tensor_node
from ...dynamo.writes import are_apart, storages_of, written_by

_MOST_OPERATIONS = 256
_SMALL = 64  # elements of a tensor that is read at every call
_MOST_RUN = 32  # operations that are run at every call
_MOST_ELEMENTS = 2**20  # of a tensor of which something is computed
_DENIED = {Denied.BY_TORCH: "GM101-T09", Denied.BY_FAILURE: "GM104-T06"}
_TRUTHS = ("True", "False")
_MOST_COMBINATIONS = 4  # of guarded values for which a frame is compiled; Dynamo gives a frame up after eight


@dataclass
class Answers:
    """What a frame has been compiled for.

    by_question: by what was asked of its inputs, where nobody named one; combinations: of all guarded values.
    """

    by_question: dict[str, set[str]] = field(default_factory=dict)
    combinations: set[frozenset[tuple[str, str]]] = field(default_factory=set)


@dataclass
class Values:
    """What an attempt is compiled for.  guarded: the values; refusal: why the last that was asked for is not known."""

    guarded: set[tuple[str, str]] = field(default_factory=set)
    refusal: str = "GM104-T01"


class _Unknown(Exception):  # noqa: N818  control flow, not an error
    """The tensor depends on data that is not known; the argument is the code of the refusal."""


@dataclass(frozen=True)
class _Making:
    """How the graph makes a tensor: the inputs of the graph that it takes, and its operations, both in order."""

    root: torch.fx.Node
    leaves: list[torch.fx.Node]
    operations: list[torch.fx.Node]


@question(otherwise="")
def text(trace: Trace, tensor: Variable) -> str:
    """The elements of the tensor, parted by spaces; "" where they are not known."""
    compilation = trace.compilation
    values, compilation.of(Captured).denied = compilation.of(Values), None
    values.refusal = "GM101-T11"
    if is_as_written(trace):
        return ""
    root = tensor_node(tensor)
    try:
        constant = getattr(root.meta["example_value"], "constant", None)
        if constant is not None:  # the fake tensor itself knows: made of numbers, and not written to since
            return _readable(constant)
        making = _making(compilation, root)
        real = {leaf: leaf.meta["grapharg"].example for leaf in making.leaves}
        value = _readable(_result(making, real))
        _guard(compilation, making, real, value)
    except _Unknown as unknown:
        values.refusal = unknown.args[0]
        return ""
    return value


@question(otherwise=None)
def refuse(trace: Trace) -> None:
    """Remember that the statement stays as it was, for the reason found last; where nobody asked, T01."""
    compilation = trace.compilation
    denied = compilation.of(Captured).denied
    record(_DENIED[denied] if denied else compilation.of(Values).refusal)


def _making(compilation: Compilation, root: torch.fx.Node) -> _Making:
    """What makes the tensor, what was written to it or to an alias of it included."""
    found: set[torch.fx.Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        if node.op == "placeholder":
            _check_leaf(node)
        elif not is_cheap(node) and not only_writes(node):
            log.debug("not known: %s", node.format_node())
            raise _Unknown("GM104-T01")
        found.add(node)
        if len(found) > _MOST_OPERATIONS or not (_is_small(node.meta.get("example_value")) or only_writes(node)):
            raise _Unknown("GM104-T01")
        waiting += node.all_input_nodes or ()
        if not waiting:
            waiting += _writes(compilation, root.graph, found)
    ordered = [node for node in root.graph.nodes if node in found]
    if is_autocast() and any(map(_is_floating, ordered)):
        raise _Unknown("GM104-T01")  # a guard would compute it outside of the region
    leaves = [node for node in ordered if node.op == "placeholder"]
    return _Making(root, leaves, [node for node in ordered if node.op != "placeholder"])


def _is_small(value: Any) -> bool:
    """Is it a number, or a tensor of fixed sizes and not too many elements, or are they?"""
    if isinstance(value, (tuple, list)):
        return all(map(_is_small, value))
    if isinstance(value, torch.Tensor):
        sizes = [size for size in value.shape if type(size) is int]
        return len(sizes) == value.dim() and bool(value.numel() <= _MOST_ELEMENTS)
    return type(value) in (int, float, bool)


def _is_floating(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _writes(compilation: Compilation, graph: torch.fx.Graph, tensors: set[torch.fx.Node]) -> Iterator[torch.fx.Node]:
    """The other operations that may have written to one of the tensors, or to an alias."""
    storages = {storage for node in tensors for storage in storages_of(node)}
    writes = [(node, written) for node in graph.nodes if (written := written_by(node))]
    for node, written in writes:
        if not written.isdisjoint(storages):
            if not only_writes(node):
                log.debug("perhaps written to: %s", node.format_node())
                raise _Unknown("GM104-T03")
            if node not in tensors:
                yield node
    if not are_apart(compilation, storages, {storage for _, written in writes for storage in written}):
        raise _Unknown("GM104-T03")  # what is run is run on copies, which share no memory


def _check_leaf(node: torch.fx.Node) -> None:
    argument = node.meta.get("grapharg")
    if argument is None or not argument.is_tensor:
        raise _Unknown("GM104-T01")
    tensor = argument.example
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise _Unknown("GM104-T01")
    if tensor.requires_grad or tensor.layout is not torch.strided or tensor.device.type == "meta":
        raise _Unknown("GM104-T01")
    if _is_held_by_module(node) and tensor.numel() > _SMALL:
        raise _Unknown("GM104-T01")


def _is_held_by_module(leaf: torch.fx.Node) -> bool:
    return "NN_MODULE" in leaf.meta["grapharg"].source.guard_source.name


def _is_named(leaf: torch.fx.Node) -> bool:
    """Does ``GRAPHMEND_VALUES`` name the argument, attribute or key under which the tensor comes in?"""
    source = leaf.meta["grapharg"].source
    while source is not None:
        for part in ("local_name", "member", "index", "global_name"):
            name = getattr(source, part, None)
            if isinstance(name, str) and any(fnmatchcase(name, pattern) for pattern in queue.values):
                return True
        source = getattr(source, "base", None)
    return False


def _readable(tensor: torch.Tensor) -> str:
    if tensor.is_complex() or tensor.isnan().any():  # not a number: equal to nothing
        raise _Unknown("GM104-T01")
    return text_of(tensor)


def _guard(compilation: Compilation, making: _Making, real: dict[torch.fx.Node, torch.Tensor], value: str) -> None:
    """Make the compiled code depend on the value, in as few reads as there can be; raises _Unknown if it may not."""
    if not making.leaves:
        return
    output = compilation.output
    if output.export or getattr(output, "package", None) is not None:
        raise _Unknown("GM104-T04")
    by_inputs = not all(map(_is_held_by_module, making.leaves)) and value in _TRUTHS
    if all(tensor.numel() <= _SMALL for tensor in real.values()) and not by_inputs:
        parts = [(guarded.Computation(leaf, [], [leaf]), _readable(tensor)) for leaf, tensor in real.items()]
    else:
        if len(making.operations) > _MOST_RUN:
            raise _Unknown("GM104-T01")
        made = [_part(making, root) for root in _whole_numbers(making)]
        parts = [
            (
                guarded.Computation(part.root, part.operations, part.leaves),
                value if part is making else _readable(_result(part, real)),
            )
            for part in made
        ]
    if not all(computation.can_be_guarded(compilation, answer) for computation, answer in parts):
        raise _Unknown("GM104-T04")
    if not all(_is_held_by_module(leaf) or _is_named(leaf) for leaf in making.leaves):
        _check_first(compilation, parts)
    _check_few(compilation, {(computation.key, answer) for computation, answer in parts})
    for computation, answer in parts:
        computation.guard(compilation, answer)


def _whole_numbers(making: _Making) -> list[torch.fx.Node]:
    """What the tensor is made of, instead of a tensor of floats: a few whole numbers, where nothing else decides it.

    Not where something is written to: they may have been other numbers when it was made of them.
    """
    if any(map(only_writes, making.operations)):
        return [making.root]
    found: dict[torch.fx.Node, None] = {}
    waiting = [making.root]
    while waiting:
        node = waiting.pop()
        value = node.meta.get("example_value")
        if not isinstance(value, torch.Tensor):
            return [making.root]
        if not value.is_floating_point() and value.numel() <= _SMALL:
            found[node] = None
        elif node.op == "placeholder" or not value.is_floating_point():
            return [making.root]
        else:
            waiting += node.all_input_nodes
    return list(found)


def _part(making: _Making, root: torch.fx.Node) -> _Making:
    """The part of it that makes `root`."""
    if root is making.root:
        return making
    needed = {root}
    for node in reversed(making.operations):
        if node in needed:
            needed.update(node.all_input_nodes)
    return _Making(
        root,
        [node for node in making.leaves if node in needed],
        [node for node in making.operations if node in needed],
    )


def _result(making: _Making, real: dict[torch.fx.Node, torch.Tensor]) -> torch.Tensor:
    writes = any(map(only_writes, making.operations))
    given = {leaf: real[leaf] for leaf in making.leaves}
    try:
        return guarded.run(making.root, making.operations, given, writes)
    except Exception as error:  # of the program's own operation: it raises it where it stands
        log.debug("not known: %s", error)
        raise _Unknown("GM104-T01") from error


def _check_first(compilation: Compilation, parts: list[tuple[guarded.Computation, str]]) -> None:
    """Nobody named the input: as with sizes, a second value is one too many, unless it can have two only."""
    # What follows a break has intermediate results for its inputs, which rarely stay what they are.
    resumed = compilation.code.co_name.startswith("torch_dynamo_resume_in")
    if resumed or any(part.result_dtype.is_floating_point for part, _ in parts):
        raise _Unknown("GM104-T02")
    answers = compilation.memory.of(Answers).by_question
    for part, answer in parts:
        known = answers.setdefault(part.key, set())
        if answer not in known and len(known) >= (2 if answer in _TRUTHS else 1):
            raise _Unknown("GM104-T02")
    for part, answer in parts:
        answers[part.key].add(answer)


def _check_few(compilation: Compilation, now: set[tuple[str, str]]) -> None:
    """Raise _Unknown if the frame has been compiled for many other values already."""
    seen, values = compilation.memory.of(Answers).combinations, compilation.of(Values)
    if len(seen) >= _MOST_COMBINATIONS and not any(now <= combination for combination in seen):
        raise _Unknown("GM104-T05")
    if not values.guarded:
        compilation.judge(lambda _graph: seen.add(frozenset(values.guarded)))
    values.guarded |= now
