"""For which values of its inputs and buffers a frame is compiled, and the guards that keep its code to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import torch

from ...engine.attempt.attempt import Feature, Lifetime
from ...engine.attempt.compilation import Compilation
from ...engine.door import frame_guards
from ...engine.door.frame_guards import Computation, text_of
from ...engine.door.tracer import Trace, log
from ...engine.epilogue import queue
from ...engine.facts.operations import only_writes
from ...engine.facts.writes import memory_of, operations, written_by
from ...engine.graph_end import dead_code
from ...engine.graph_end.order import Verdict
from .codes import NO_GUARD, OF_AN_INPUT, TOO_MANY_VALUES, UNKNOWN_DATA

SMALL = 64  # elements of a tensor that is read at every call
_FEW = 16  # of one that nobody named, and that may as well be data: labels, or flags of elements
_MOST_RUN = 32  # operations that are run at every call
_TRUTHS = ("True", "False")
_MOST_COMBINATIONS = 4  # of guarded values for which a frame is compiled; Dynamo gives a frame up after eight
_MOST_NUMBERS = 2  # of a question that nobody named, and that is not one of truth: what has changed twice counts


# By the key of their computation; those that the frame itself writes to are others in each call.
_NUMBERS = Feature("a frame is compiled for numbers that its inputs hold", Lifetime.CODE)
# By the line that asks: a frame that comes to it, because another one breaks there, need not learn that anew.
_SAME = Feature("what an input holds is the same in all calls", Lifetime.EVERYWHERE)


@dataclass
class Answers:
    """What a frame has been compiled for.

    by_question: by what was asked of its inputs, where nobody named one; combinations: of all guarded values.
    """

    by_question: dict[str, set[str]] = field(default_factory=dict)
    combinations: set[frozenset[tuple[str, str]]] = field(default_factory=set)


@dataclass
class Guarded:
    """The values that an attempt to trace a frame is compiled for, each with its computation.

    numbers: the memory of what the computations of numbers are given, where nobody named it.
    """

    values: set[tuple[str, str]] = field(default_factory=set)
    numbers: dict[str, set[int]] = field(default_factory=dict)


class Unknown(Exception):  # noqa: N818  control flow, not an error
    """The tensor depends on data that is not known; the argument is the code of the refusal."""


@dataclass(frozen=True)
class Making:
    """How the graph makes the tensor `root`: the inputs of the graph that it takes and the operations, in order."""

    root: torch.fx.Node
    leaves: list[torch.fx.Node]
    operations: list[torch.fx.Node]

    def result(self) -> str:
        """The elements of the tensor that the real inputs give, parted by spaces; raises Unknown."""
        writes = any(map(only_writes, self.operations))
        given = {leaf: leaf.meta["grapharg"].example for leaf in self.leaves}
        try:
            made = frame_guards.run(self.root, self.operations, given, writes)
        except Exception as error:  # of the program's own operation: it raises it where it stands
            log.debug("not known: %s", error)
            raise Unknown(UNKNOWN_DATA) from error
        return readable(made)

    def part(self, root: torch.fx.Node) -> Making:
        """How it makes an input, or another tensor on the way, where nothing is written to; or the tensor itself."""
        if root is self.root:
            return self
        needed = {root}
        for node in reversed(self.operations):
            if node in needed:
                needed.update(node.all_input_nodes)
        kept = ([node for node in nodes if node in needed] for nodes in (self.leaves, self.operations))
        return Making(root, *kept)

    def whole_numbers(self) -> list[torch.fx.Node]:
        """The whole numbers that a tensor of floats is made of, where nothing else decides it; else the tensor itself.

        Where something is written to, it is the tensor: the numbers may have been others when it was made of them.
        """
        if any(map(only_writes, self.operations)):
            return [self.root]
        found: dict[torch.fx.Node, None] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            value = node.meta.get("example_value")
            if not isinstance(value, torch.Tensor):
                return [self.root]
            if not value.is_floating_point() and value.numel() <= SMALL:
                found[node] = None
            elif node.op == "placeholder" or not value.is_floating_point():
                return [self.root]
            else:
                waiting += node.all_input_nodes
        return list(found)


def readable(tensor: torch.Tensor) -> str:
    """The elements, parted by spaces; raises Unknown where one is equal to nothing, or complex."""
    if tensor.is_complex() or tensor.isnan().any():
        raise Unknown(UNKNOWN_DATA)
    return text_of(tensor)


def is_held_by_module(leaf: torch.fx.Node) -> bool:
    """Does the input come out of a module, as a buffer does?"""
    return "NN_MODULE" in leaf.meta["grapharg"].source.guard_source.name


def guard(compilation: Compilation, making: Making, value: str) -> None:
    """Keep the compiled code to the value, by guards on as few elements as will do; raises Unknown if it may not be."""
    dead_code.see_to(compilation)
    if not making.leaves:
        return
    if compilation.output.export or compilation.is_saved:
        raise Unknown(NO_GUARD)
    roots = making.leaves
    can_be_run = len(making.operations) <= _MOST_RUN
    may_be_leaves = all(map(is_held_by_module, roots)) or value not in _TRUTHS
    if any(leaf.meta["grapharg"].example.numel() > SMALL for leaf in roots) or not may_be_leaves:
        if not can_be_run:
            raise Unknown(UNKNOWN_DATA)
        roots = making.whole_numbers()
    elif value in _TRUTHS and can_be_run:
        roots = [making.root]  # what a module counts is another number in each call
    made = [making.part(root) for root in roots]
    parts = [(Computation(part.root, part.operations, part.leaves), part.result()) for part in made]
    if not all(computation.can_be_guarded(compilation, answer) for computation, answer in parts):
        raise Unknown(NO_GUARD)
    is_number = value not in _TRUTHS and not compilation.one_graph and not all(map(is_named, making.leaves))
    data = (part for part in made if not all(map(_is_state, part.leaves)))
    if is_number and any(part.root.meta["example_value"].numel() > _FEW for part in data):
        raise Unknown(OF_AN_INPUT)
    if not all(is_held_by_module(leaf) or is_named(leaf) for leaf in making.leaves):
        _check_first(compilation, parts)
    _check_few(compilation, {(computation.key, answer) for computation, answer in parts}, is_number)
    if is_number:
        compilation.of(Guarded).numbers.update({computation.key: memory_of(making.leaves) for computation, _ in parts})
    for computation, answer in parts:
        computation.guard(compilation, answer)


def _is_state(leaf: torch.fx.Node) -> bool:
    """Is it what an object holds that stays from call to call, such as a schedule, and nothing that a call is given?"""
    if is_held_by_module(leaf):
        return True
    source = leaf.meta["grapharg"].source
    is_part = hasattr(source, "base")
    while (base := getattr(source, "base", None)) is not None:
        source = base
    is_given = getattr(source, "is_input", False) and source.local_name != "self"
    return is_part and not is_given


def is_named(leaf: torch.fx.Node) -> bool:
    """Does ``GRAPHMEND_VALUES`` name the argument, attribute or key under which the tensor comes in?"""
    source = leaf.meta["grapharg"].source
    while source is not None:
        for part in ("local_name", "member", "index", "global_name"):
            name = getattr(source, part, None)
            if isinstance(name, str) and any(fnmatchcase(name, pattern) for pattern in queue.values):
                return True
        source = getattr(source, "base", None)
    return False


def _check_first(compilation: Compilation, parts: list[tuple[Computation, str]]) -> None:
    """Raise Unknown where inputs that nobody named have had another value in this frame; a truth may have both."""
    # What follows a break has intermediate results for its inputs, which rarely stay what they are.
    resumed = compilation.code.co_name.startswith("torch_dynamo_resume_in")
    line = Trace(compilation.output.current_tx).line
    if resumed or any(part.result_dtype.is_floating_point for part, _ in parts) or not compilation.allows(_SAME, line):
        raise Unknown(OF_AN_INPUT)
    answers = compilation.memory.of(Answers).by_question
    for part, answer in parts:
        known = answers.setdefault(part.key, set())
        if answer not in known and len(known) >= (2 if answer in _TRUTHS else 1):
            compilation.drop(_SAME.at(line))
            raise Unknown(OF_AN_INPUT)
    for part, answer in parts:
        answers[part.key].add(answer)


def _check_few(compilation: Compilation, now: set[tuple[str, str]], is_number: bool) -> None:
    """Raise Unknown if the frame has been compiled for many other values already, or changes a number itself."""
    answers, guarded_now = compilation.memory.of(Answers), compilation.of(Guarded).values
    seen = answers.combinations
    if len(seen) >= _MOST_COMBINATIONS and not any(now <= combination for combination in seen):
        raise Unknown(TOO_MANY_VALUES)
    for key, answer in now if is_number else ():
        others = {other for combination in seen for name, other in combination if name == key} - {answer}
        if not compilation.allows(_NUMBERS, key) or len(others) >= _MOST_NUMBERS:
            raise Unknown(TOO_MANY_VALUES)
    compilation.judge(Verdict.VALUES, _remember)
    guarded_now |= now


def _remember(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    answers, guarded = compilation.memory.of(Answers), compilation.of(Guarded)
    written = {memory for node in operations(module) if node.op.startswith("call") for memory in written_by(node)}
    changing = {key for key, memory in guarded.numbers.items() if not memory.isdisjoint(written)}
    if changing:
        reason = "a number that a frame is specialised by is one that it changes"
        compilation.without(*map(_NUMBERS.at, changing), reason=reason)
    answers.combinations.add(frozenset(guarded.values))
