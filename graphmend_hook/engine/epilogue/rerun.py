"""Runs a frame as it was written, where the graph that was compiled of it failed.

What is deferred, effects and guards, eager has done by the time that an operation after it fails; a compiled graph may
even run that operation first.  And for a size that the data decides, Dynamo asserts what it took for granted, such as
that it is not a 1 that would be broadcast: eager may not fail at all.

What a frame does to the program's objects Dynamo does after the graph.  So if the graph has written to nothing that is
older than it, nothing has happened by then, and the frame can be run once more, in eager, with the random numbers that
it would have drawn.  A graph with such assertions that cannot be run again so is not compiled: it is traced anew, with
its numbers read as they were written.

So too where a guard has failed, which is known before anything is done to the program's objects: what eager would not
have reached has not happened.  There, and where such assertions may fail, the graph may also have written to inputs of
which there are copies (`rollback`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..attempt.compilation import Compilation
from ..door.question import question
from ..door.torch_modes import SWITCHING
from ..door.tracer import Trace
from ..door.variables import bytes_of, most_copied
from ..facts.operations import REPLACING_MEMORY, facts_of, name_of
from ..facts.writes import fakes_of, memory_of, operations, written_inputs
from ..graph_end.order import Verdict
from .rollback import reader_of


@dataclass
class Plan:
    """How the frame of an attempt is run again.

    draws: the devices on which its graph draws random numbers; None where it may not be run again, or need not.
    draws_in_python: does generated code draw from Python's `random`, or numpy's generator, before it?
    written: code that gives the inputs to which the graph writes, see `rollback`; None where it writes to none.
    switches: does the graph switch a mode of torch, and leave it so where it fails?
    has_guards: do guards wait for its end?  reruns_guards: is the frame run again where one has failed?
    has_graph: the graph of the attempt is complete; may_raise: what waits for its end may raise (a guard, a handler).
    rests: each says whether the graph, now complete, takes something for granted that may not hold.
    otherwise: called where the frame may not be run again; otherwise_guarded: where it is not where a guard has failed.
    """

    draws: frozenset[torch.device] | None = None
    draws_in_python: bool = False
    written: CodeType | None = None
    switches: bool = False
    has_guards: bool = False
    reruns_guards: bool = False
    has_graph: bool = False
    may_raise: bool = False
    rests: set[Callable[[Compilation], bool]] = field(default_factory=set)
    otherwise: set[Callable[[Compilation], None]] = field(default_factory=set)
    otherwise_guarded: set[Callable[[Compilation], None]] = field(default_factory=set)


@dataclass
class RerunMemory:
    """What a frame remembers.

    failures: how often its graphs have failed, where the frame as it was written does not; said: by the last of them.
    """

    failures: int = 0
    said: str = ""


@question(otherwise=None)
def expect_failure(trace: Trace) -> None:
    """Run the frame again if its graph fails: what eager would have done by then is not done yet, such as a guard."""
    keep(trace.compilation).may_raise = True


@question(otherwise=None)
def expect_guard(trace: Trace) -> None:
    """The same, and so too if the guard fails that waits for its end."""
    plan = keep(trace.compilation)
    plan.may_raise = plan.has_guards = True


def keep(compilation: Compilation) -> Plan:
    """See to it that the frame is run again if the graph that Dynamo is tracing fails."""
    compilation.judge(Verdict.SWITCHES, see_switches)
    compilation.judge(Verdict.RERUN, _prepare)
    return compilation.of(Plan)


def _prepare(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    plan = compilation.of(Plan)
    plan.has_graph = True
    nodes = [node for node in operations(module) if node.op.startswith("call")]
    if _is_alone(nodes) and _can_be_undone(compilation, nodes, module):
        plan.draws = frozenset(_drawn_on(nodes))
        plan.draws_in_python = bool(compilation.output.random_calls)
        plan.reruns_guards = plan.has_guards and not any(map(_is_wrapped, module.graph.nodes))
    unmet = plan.otherwise if plan.draws is None else ()
    for action in (*unmet, *(() if plan.reruns_guards else plan.otherwise_guarded)):
        action(compilation)


def _can_be_undone(compilation: Compilation, nodes: list[torch.fx.Node], module: torch.fx.GraphModule) -> bool:
    """Does the graph write to no input, or to such as there are copies of?  Those are made where it may fail."""
    plan, written = compilation.of(Plan), _written(module)
    may_fail = plan.has_guards or any(rests(compilation) for rests in plan.rests)
    if written and may_fail and not any(map(_changes_form, nodes)):
        plan.written = reader_of(written, compilation)
    return written == [] or plan.written is not None


def _changes_form(node: torch.fx.Node) -> bool:
    """Does it give a tensor another shape, or other memory in another way than ``x.data = y`` does?"""
    return facts_of(node).changes_form and name_of(node) not in REPLACING_MEMORY


def _is_wrapped(node: torch.fx.Node) -> bool:
    """Is it a tensor of a class of its own?  What is done to one may wait for other processes, which run once."""
    return any(is_traceable_wrapper_subclass(fake) for fake in fakes_of(node))


def see_switches(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """If the graph switches modes, and fails, generated code puts them back."""
    compilation.of(Plan).switches = any(name_of(node) in SWITCHING for node in operations(module))


def let_run_again(compilation: Compilation, module: torch.fx.GraphModule, kept: Iterable[torch.fx.Node]) -> bool:
    """See to it that the frame can be run again: what the graph writes to is copied before each call.

    False where that cannot be: it has operations of others, or that wait for them, or it writes to what is large, or is
    to be `kept`.
    """
    nodes, written = [node for node in operations(module) if node.op.startswith("call")], _written(module)
    if not written:
        return written is not None and _is_alone(nodes)
    fakes = [fake for node in written for fake in fakes_of(node)]
    is_apart = memory_of(written).isdisjoint(memory_of(kept))
    if not (is_apart and _is_alone(nodes)) or bytes_of(fakes) > min(most_copied(fake.device) for fake in fakes):
        return False
    keep(compilation).rests.add(_holds_copies)
    return True


def _holds_copies(_compilation: Compilation) -> bool:
    return True


def _is_alone(nodes: list[torch.fx.Node]) -> bool:
    """Is none of the operations one of others, or one that waits for other processes?"""
    facts = [facts_of(node) for node in nodes]
    return all(each.is_of_torch and not each.communicates for each in facts)


def _written(module: torch.fx.GraphModule) -> list[torch.fx.Node] | None:
    """The inputs that the graph writes to, None if that is not known.  Fake tensors share storages as real ones do."""
    try:
        return written_inputs(module)
    except NotImplementedError:  # a wrapper of a function transform has no memory of its own
        return None


def _drawn_on(nodes: Iterable[torch.fx.Node]) -> Iterator[torch.device]:
    for node in nodes:
        if not facts_of(node).draws:
            continue
        values = [operand.meta.get("example_value") for operand in (node, *node.all_input_nodes)]
        devices = [value.device for value in values if isinstance(value, torch.Tensor)]
        yield from (device for device in devices if device.type != "meta")  # which has no generator
