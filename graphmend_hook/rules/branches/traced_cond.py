"""What [Cond] calls where a test is a tensor: ``torch.cond``, where it gives what the branch as it was written gives.

Dynamo traces the sides as graphs of their own, and fails hard where it cannot; then the frame is traced anew, without
the branch or, where a backend has failed, without any (`forgo`): it breaks the graph as it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn.modules.lazy import LazyModuleMixin

from ...dynamo import queue
from ...dynamo.compilation import Compilation
from ...dynamo.handlers import is_caught
from ...dynamo.question import question
from ...dynamo.rerun import expect_failure
from ...dynamo.restart import Failure, Without, can_do_without, expect_success, is_as_written, trace_anew
from ...dynamo.trace import SourceLine, Trace
from ...dynamo.trust import Mechanism, works
from ...dynamo.variables import Variable, python_of, tensor_node
from ...dynamo.writes import bodies_of, memory_of, spares_inputs, storages_of
from ..effects.traced_defer import record
from .traced_conditions import truth
from .traced_select import Effect, Side
from .traced_sides import expect_unwritten, is_harmful
from .traced_speculated import Unspeculable, is_tensor

CALLED = ("conditional",)  # by rewritten code


@dataclass
class CondOrders:
    """What further attempts do.  refusal: the code that says why no branch is captured; "" if they may be."""

    refusal: str = ""


@dataclass
class CondMemory:
    """What a frame remembers: the places that may not be captured, and the code that says why."""

    refusals: dict[SourceLine | None, str] = field(default_factory=lambda: {None: "GM107-T03"})


@dataclass
class _Open:
    """The branch at `line`, whose sides are being traced.

    draws: how many of Python's random numbers were drawn before; given: what tells the tensors that the sides give, but
    for their values; memory: theirs; copied: that of what was older, and had to be copied.
    """

    line: SourceLine | None
    draws: int = 0
    given: list[tuple[Any, ...]] = field(default_factory=list)
    memory: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)


@dataclass
class _Branches:
    """Those of an attempt whose sides are being traced, the innermost last.  is_watched: some were captured."""

    open: list[_Open] = field(default_factory=list)
    is_watched: bool = False


def conditional(
    test: torch.Tensor, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect] | None
) -> Any:
    """What the side that is taken returns, a tuple of tensors and tuples of them; None where it cannot be captured."""
    if not is_dynamo_compiling():
        return None
    try:
        predicate = truth(test)
    except Unspeculable as error:
        record(error.args[0])
        return None
    # Where generated code is not understood, nothing would run the frame again if its graph fails.
    why = _begin(arguments, queue.cond == "always") if queue.understood else "GM101-T09"
    if why:
        record(why)
        return None
    expect_success()
    expect_failure(False)
    outcome = torch.cond(
        predicate,
        lambda: _given(sides[0](effects, *arguments)),
        lambda: _given(sides[1](effects, *arguments)),
    )
    _end()
    return outcome


def _given(value: Any) -> Any:
    """What a side gives, with a copy of what is older than the side, or shares memory with what it gave before."""
    if type(value) is tuple:
        return tuple([_given(part) for part in value])
    if not is_tensor(value) or isinstance(value, torch.nn.Parameter):
        _give_up("GM107-T02")
    given = value.clone() if _is_shared(value) else value
    if given.stride() != value.stride():
        _give_up("GM107-T02")
    _remember(value, given)
    return given


@question(otherwise="GM107-T03")
def _begin(trace: Trace, arguments: Variable, always: bool) -> str:
    """ "" where the branch may be captured, else the code of the refusal."""
    if not works(Mechanism.FAILURE):
        return "GM101-T09"
    compilation = trace.compilation
    known = compilation.memory.of(CondMemory).refusals.get(trace.line, "")
    code = compilation.attempts.of(CondOrders).refusal or known
    if code:
        return code
    if is_as_written(trace) or trace.output.export or is_caught(trace):
        return "GM107-T03"
    if any(map(_is_touchy, arguments.realize().items)):
        return "GM107-T03"
    if is_harmful(trace):
        return "GM107-T04"
    if torch.is_grad_enabled():
        return "GM107-T01"
    if not always and not compilation.one_graph:
        return "GM107-T05"
    branches = compilation.of(_Branches)
    if not branches.is_watched:
        branches.is_watched = True
        compilation.judge(lambda module: _look_at(compilation, module))
        can_do_without(compilation, Without.CAPTURED_BRANCHES, lambda failure: _retreat(compilation, failure))
    branches.open.append(_Open(trace.line, len(trace.output.random_calls)))
    return ""


def _is_touchy(variable: Any) -> bool:
    """Would tracing both sides show in it?  In an iterator, which moves on; in a module that learns its shapes."""
    kind = type(variable.realize()).__name__
    if "Iterator" in kind or "Generator" in kind or "Enumerate" in kind:
        return True
    if "NNModule" not in kind:
        return False
    module: torch.nn.Module = python_of(variable)
    return any(isinstance(part, LazyModuleMixin) and part.has_uninitialized_params() for part in module.modules())


@question(otherwise=True)
def _is_shared(trace: Trace, value: Variable) -> bool:
    """Has the tensor memory that is older than the side, or that of what the side has given before?"""
    branch, node = trace.compilation.of(_Branches).open[-1], tensor_node(value)
    memory = set(storages_of(node))
    older = memory_of([*trace.graph.find_nodes(op="placeholder"), *trace.graph.find_nodes(op="get_attr")])
    if node.graph is trace.graph and memory.isdisjoint(older | branch.memory):
        return False
    branch.copied |= memory
    return True


@question(otherwise=None)
def _remember(trace: Trace, value: Variable, given: Variable) -> None:
    branch = trace.compilation.of(_Branches).open[-1]
    if tensor_node(value).meta["example_value"].requires_grad:
        forgo(trace.compilation, "GM107-T01")
    if len(trace.output.random_calls) > branch.draws:  # they are drawn before the graph, for both sides
        forgo(trace.compilation, "GM107-T03")
    node = tensor_node(given)
    tensor = node.meta["example_value"]
    branch.memory |= set(storages_of(node))
    branch.given.append((tensor.dtype, tensor.device, tensor.layout, str(tensor.shape), str(tensor.stride())))


@question(otherwise=None)
def _end(trace: Trace) -> None:
    """Both sides have been traced: they have to give the same, but for the values."""
    branches = trace.compilation.of(_Branches)
    branch = branches.open[-1]
    half = len(branch.given) // 2
    if branch.given[:half] != branch.given[half:]:
        forgo(trace.compilation, "GM107-T02")
    branches.open.pop()
    if branch.copied:
        nodes = [*trace.graph.nodes]
        captured = max(index for index, node in enumerate(nodes) if node.target is torch.ops.higher_order.cond)
        older = [node for node in nodes[:captured] if not branch.copied.isdisjoint(storages_of(node))]
        expect_unwritten(trace.compilation, branch.line, older, nodes[captured:])


@question(otherwise=None)
def _give_up(trace: Trace, code: str) -> None:
    forgo(trace.compilation, code)


def _retreat(compilation: Compilation, failure: Failure) -> None:
    if not failure.restarts:
        forgo(compilation)


def forgo(compilation: Compilation, code: str = "GM107-T03") -> None:
    """Trace anew without the branch whose side is being traced, or, where none is, without any; unless it was done."""
    open_branches, orders = compilation.of(_Branches).open, compilation.attempts.of(CondOrders)
    if open_branches:
        compilation.memory.of(CondMemory).refusals[open_branches[-1].line] = code
    elif orders.refusal:
        return
    else:
        orders.refusal = code
    trace_anew("the sides of a branch cannot be captured")


def _look_at(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Forgo the branches if a side writes to a tensor that is older than it."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond):
        for body in bodies_of(node, module):
            if not spares_inputs(body):
                forgo(compilation, "GM107-T04")
