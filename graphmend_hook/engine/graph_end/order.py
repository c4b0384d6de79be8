"""The end of a graph: what is asked of it, what is done to it, and what is put around its compiler, in this order.

Dynamo has traced a frame as far as it goes, and no backend has the graph yet.  What an attempt asks for by
`Compilation.judge`, `change` and `wrap_compiler` runs once, in its place in the lists below, whoever has asked first:

1. verdicts: each looks at the graph that Dynamo has made, and may have the frame traced anew; none changes it;
2. changes: each changes the graph; one that cannot be made has the frame traced anew, and its graph is dropped;
3. wrappers: each is given the compiler, and gives the one to use.  The first is the innermost.

A place names no function, since rules have places here as well: one file asks for each, and grep finds it by the name
of the place.  With ``_GRAPHMEND_DEFECTS=raise`` a verdict that changes the graph ends the program.  One change is made
before all this: what Dynamo drops before a graph is complete is used before that (`dead_code`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch

from ...diagnostics import defects_are_fatal

Look = Callable[[Any, torch.fx.GraphModule], None]  # is given the attempt and the graph
Compiler = Callable[..., Callable[..., Any]]
Wrap = Callable[[Any, torch.fx.GraphModule, Compiler], Compiler]


class Verdict(Enum):
    """The questions, and for what the frame is traced anew."""

    # What breaks and guards cost.
    BREAK = "does it end in a break at a mended statement?  That is recorded, for no retry"
    GUARDS = "a guard behind a freed break has failed too often, or is sure to"
    # What a rule has relied on at one place; the retry leaves that place as it was written.
    CREATED = "it ends where a side makes the value of an attribute that it creates"
    READ_LATER = "a container is changed after an effect that shows it"
    LATE = "it ends in a break that is given a number which exists behind the graph"
    LATE_GIVEN = "an operation takes a number that exists behind the graph for something else"
    KEPT = "a list is looked at after an append that waits"
    LOOKED_UP = "a list is changed in which a number was looked up before the graph"
    LOGGERS = "what a logger shows is changed"
    DRAWS = "an operation of another library may draw before a draw that is an input"
    SELECTED = "a tensor that a branch selects is written to, or given away"
    REPLACED = "a tensor for which another one stands, since a side writes to it, is read behind the side"
    WRITTEN = "a tensor that a side writes to is one that autograd has kept, or has an alias"
    STEPS = "it ends in a step of a loop"
    UNDEFINED = "what eager has skipped gives gradients, where eager gives none"
    GRADIENTS = "a tensor does not require the gradient that it was told to, and that can be told"
    INPUTS = "an input that is told to require a gradient is written to, or not read"
    # What is relied on in the whole frame; the retry traces it as it was written.
    SKIPPED = "a frame that would have been left to eager reads what no guard can tell"
    SIZES = "a size is fixed that the user has marked as dynamic"
    DIVISIONS = "whole numbers are divided behind a guard, which kills a process on torch 2.12"
    MODES = "a mode of torch is switched behind a guard"
    RECURRENT = "a tensor that a recurrent layer is trained by is used elsewhere, too"
    # Whether the frame can be run again if the graph fails.  What is needed of captured numbers comes before.
    SWITCHES = "does it switch a mode of torch?  That is remembered, for no retry"
    SHAPES = "a captured size decides what nothing checks"
    RERUN = "the frame cannot be run again, and something rests on that"
    # What captured numbers decide.  A decision by an example is given up last: the cheaper retries come first.
    BRANCH = "it ends in a break at a branch that an example of a captured number could decide"
    EXAMPLES = "it holds for one number only, or is trained, where an example has decided"
    # Remembered of the frame, so behind all that has it traced anew.
    VALUES = "it changes a number that the frame is specialised by"


class Change(Enum):
    """What is done to the graph."""

    ONE_COPY = "what is asserted of a device is read by one copy"
    CONDITIONS = "it gives the conditions of steps, by which a gate knows whether one was taken"
    WRITES = "it gives the conditions of writes, behind the others"
    FLOATS = "floats that no operation is given are no inputs, of which the compiler would have the frame traced anew"
    USED = "what AOTAutograd would drop is used: draws, and what may fail and was asked for"
    SAVED = "gradients rest on what inputs held when they were read"
    ASSERTED = "what is taken for granted of captured numbers is asserted of data"
    STOPPED = "no gradient comes to what only sides use that are not taken"


class Wrapper(Enum):
    """What the compiler is called with, and how what it makes is called."""

    SYMBOLS = "the backend may make symbols for what the data decides, though this frame may not"
    CACHEABLE = "the backend may keep on disk what it makes of functions of ours"
    DONATED = "a backward pass out of a cache writes to nothing that the program was given"
    CUDA_GRAPHS = "sizes that the data decides are kept out of CUDA graphs"
    COPIES = "a side writes to a copy of an input, and that is written back if the side was taken"
    GATES = "inputs that only steps use are given behind gates, which hand a gradient on if one was taken"
    TOLD = "inputs are told to require a gradient before the call: a gate has to be given what is told"


Step = Verdict | Change | Wrapper
ORDER: tuple[Step, ...] = (*Verdict, *Change, *Wrapper)
# What has to have run, without an exception of ours, for a step to be made; it is asked for with it.  The other changes
# look at the graph by themselves.
NEEDS: dict[Step, tuple[Step, ...]] = {
    Change.CONDITIONS: (Verdict.UNDEFINED,),  # which finds them
    Change.ASSERTED: (Verdict.SHAPES, Verdict.RERUN, Verdict.EXAMPLES),
    Wrapper.GATES: (Verdict.UNDEFINED, Change.CONDITIONS),
    Change.WRITES: (Verdict.WRITTEN,),
    Wrapper.CACHEABLE: (Change.STOPPED,),
    Wrapper.COPIES: (Change.WRITES,),
    Wrapper.TOLD: (Verdict.INPUTS,),
}


class GraphEnd:
    """What one attempt asks for."""

    def __init__(self) -> None:
        self._asked: dict[Step, Callable[..., Any]] = {}

    def ask(self, step: Step, action: Callable[..., Any]) -> None:
        """Run `action` in the place of the step, which no other function has; what it needs is asked for before it."""
        assert self._asked.setdefault(step, action) is action, step
        assert self._asked.keys() >= {*NEEDS.get(step, ())}, step

    def run(self, module: torch.fx.GraphModule, output: Any, call: Callable[[Look, Any], bool]) -> None:
        """Run all that was asked for.

        output: Dynamo's `OutputGraph`; call: calls a function with the attempt and the graph, False where that fails.
        """
        done: set[Step] = set()
        compilers = [output.call_user_compiler]
        for step in ORDER:
            if step in self._asked:
                action = _action(step, self._asked[step], compilers)
                if done.issuperset(NEEDS.get(step, ())) and call(action, module):
                    done.add(step)
        if not done.isdisjoint(Change):
            module.recompile()
        is_ours = bool(self._asked) and not output.export
        if is_ours and all(node.op in ("placeholder", "output") for node in module.graph.nodes):
            compilers.append(_interpreted)
        if compilers[-1] is not compilers[0]:
            output.call_user_compiler = compilers[-1]


def _interpreted(module: torch.fx.GraphModule, _inputs: Any) -> Callable[..., Any]:
    """A graph without an operation: dead ones of ours kept it, until Dynamo was about to have it compiled."""
    forward: Callable[..., Any] = module.forward
    return forward


def _action(step: Step, action: Callable[..., Any], compilers: list[Compiler]) -> Look:
    if isinstance(step, Wrapper):
        return functools.partial(_wrap, action, compilers)
    if isinstance(step, Verdict) and defects_are_fatal():
        return functools.partial(_look, action)
    return action


def _wrap(wrap: Wrap, compilers: list[Compiler], compilation: Any, module: torch.fx.GraphModule) -> None:
    compilers.append(wrap(compilation, module, compilers[-1]))


def _look(look: Look, compilation: Any, module: torch.fx.GraphModule) -> None:
    before = _nodes(module)
    look(compilation, module)
    assert _nodes(module) == before, f"{look.__module__}.{look.__qualname__} changes the graph"


def _nodes(module: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    graphs = [body.graph for body in module.modules() if isinstance(body, torch.fx.GraphModule)]
    return [(node, node.op, node.target, node.args, node.kwargs) for graph in graphs for node in graph.nodes]
