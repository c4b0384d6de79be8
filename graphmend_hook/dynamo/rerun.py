"""Runs a frame as it was written, where the graph that was compiled of it failed.

What is deferred, effects and guards, eager has done by the time that an operation after it fails; a compiled graph may
even run that operation first.  And for a size that the data decides, Dynamo asserts what it took for granted, such as
that it is not a 1 that would be broadcast: eager may not fail at all.

What a frame does to the program's objects Dynamo does after the graph.  So if the graph has written to nothing that is
older than it, nothing has happened by then, and the frame can be run once more, in eager, with the random numbers that
it would have drawn.  A graph with such assertions that cannot be run again so is not compiled: it is traced anew, with
its numbers read as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import torch

from .compilation import Compilation
from .modes import SWITCHING
from .operations import facts_of, name_of
from .question import question
from .trace import Trace
from .writes import operations, spares_inputs


@dataclass
class Plan:
    """How the frame of an attempt is run again.

    draws: the devices on which its graph draws random numbers; None where it may not be run again, or need not.
    switches: does the graph switch a mode of torch, and leave it so where it fails?
    has_graph: the graph of the attempt is complete; may_raise: what waits for its end may raise (a guard, a handler).
    otherwise: called where the frame may not be run again.
    """

    draws: frozenset[torch.device] | None = None
    switches: bool = False
    has_graph: bool = False
    may_raise: bool = False
    otherwise: set[Callable[[Compilation], None]] = field(default_factory=set)


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


def keep(compilation: Compilation) -> Plan:
    """See to it that the frame is run again if the graph that Dynamo is tracing fails."""
    compilation.judge(see_switches)
    compilation.judge(_prepare)
    return compilation.of(Plan)


def _prepare(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    plan = compilation.of(Plan)
    plan.has_graph = True
    nodes = [node for node in operations(module) if node.op.startswith("call")]
    if may_run_again(compilation, module):
        plan.draws = frozenset(_drawn_on(nodes))
        return
    for action in plan.otherwise:
        action(compilation)


def see_switches(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """If the graph switches modes, and fails, generated code puts them back."""
    compilation.of(Plan).switches = any(name_of(node) in SWITCHING for node in operations(module))


def may_run_again(compilation: Compilation, module: torch.fx.GraphModule) -> bool:
    """Is there no operation of others, or that waits for them, and no write to an input?

    Fake tensors share storages as the real ones do.
    """
    nodes = [node for node in operations(module) if node.op.startswith("call")]
    facts = [facts_of(node) for node in nodes]
    if compilation.output.random_calls or not all(each.is_of_torch and not each.communicates for each in facts):
        return False
    try:
        return spares_inputs(module)
    except NotImplementedError:  # a wrapper of a function transform has no memory of its own
        return False


def _drawn_on(nodes: Iterable[torch.fx.Node]) -> Iterator[torch.device]:
    for node in nodes:
        if not facts_of(node).draws:
            continue
        values = [operand.meta.get("example_value") for operand in (node, *node.all_input_nodes)]
        devices = [value.device for value in values if isinstance(value, torch.Tensor)]
        yield from (device for device in devices if device.type != "meta")  # which has no generator
