"""What [Cond] calls where a test is a tensor: ``torch.cond``, where it gives what the branch as it was written gives.

Dynamo traces the sides as graphs of their own, and fails hard where it cannot; then the frame is traced anew, without
the branch or, where a backend has failed, without any (`forgo`): it breaks the graph as it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch._guards import CompileContext
from torch.compiler import is_dynamo_compiling
from torch.nn.modules.lazy import LazyModuleMixin

from . import queue, retrace, tracer
from .conditions import truth
from .handlers import is_caught
from .select import Effect, Side
from .speculation import Unspeculable, is_tensor
from .traced_sides import Site, expect_unwritten, harmful
from .tracer import at_trace_time, held, node_of, python_of, site_of, translator
from .writes import bodies_of, memory_of, spares_inputs, storages_of

_forgone: dict[Site, str] = {None: "GM107-T03"}  # the sites that may not be captured, and the code that says why


@dataclass
class _Open:
    """The branch at `site`, whose sides are being traced.

    draws: how many of Python's random numbers were drawn before; given: what tells the tensors that the sides give, but
    for their values; memory: theirs; copied: that of what was older, and had to be copied.
    """

    site: Site
    draws: int = 0
    given: list[tuple[Any, ...]] = field(default_factory=list)
    memory: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)


def conditional(
    test: torch.Tensor, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect] | None
) -> Any:
    """What the side that is taken returns, a tuple of tensors and tuples of them; None where it cannot be captured."""
    if not is_dynamo_compiling():
        return None
    try:
        predicate = truth(test)
    except Unspeculable as error:
        tracer.record(error.args[0])
        return None
    why = _refusal(arguments, queue.cond == "always")
    if why:
        tracer.record(why)
        return None
    if not queue.understood:  # nothing would run the frame again where its graph fails
        tracer.record("GM101-T09")
        return None
    retrace.expect_success()
    retrace.expect_failure(False)
    outcome = torch.cond(
        predicate,
        lambda: _given(sides[0](effects, *arguments)),
        lambda: _given(sides[1](effects, *arguments)),
    )
    _end()
    return outcome


def _refusal(graphmend_arguments: tuple[Any, ...], always: bool) -> str:
    """ "" where the branch may be captured, else the code of the refusal."""
    return _begin(always)


def _given(graphmend_value: Any) -> Any:
    """What a side gives, with a copy of what is older than the side, or shares memory with what it gave before."""
    if type(graphmend_value) is tuple:
        return tuple([_given(part) for part in graphmend_value])
    if not is_tensor(graphmend_value) or isinstance(graphmend_value, torch.nn.Parameter):
        _give_up("GM107-T02")
    graphmend_given = graphmend_value.clone() if _is_shared() else graphmend_value
    if graphmend_given.stride() != graphmend_value.stride():
        _give_up("GM107-T02")
    _remember()
    return graphmend_given


@at_trace_time(otherwise="GM107-T03")
def _begin(always: bool) -> str:
    at = translator()
    output, site = at.output, site_of(at)
    code = getattr(CompileContext.try_get(), "graphmend_unconditional", "") or _forgone.get(site, "")
    if code:
        return code
    if (
        retrace.is_abandoned()
        or output.export
        or is_caught(at)
        or any(map(_is_touchy, held("graphmend_arguments").items))
    ):
        return "GM107-T03"
    if site in harmful:
        return "GM107-T04"
    if torch.is_grad_enabled():
        return "GM107-T01"
    if not always and not output.root_tx.one_graph:
        return "GM107-T05"
    if not hasattr(output, "graphmend_conditional"):
        output.graphmend_conditional = []
        output.register_finalizer_fns.append(lambda module: _look_at(output, module))
    output.graphmend_conditional.append(_Open(site, len(output.random_calls)))
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


@at_trace_time(otherwise=True)
def _is_shared() -> bool:
    """Has the tensor at hand memory that is older than the side, or that of what the side has given before?"""
    output = translator().output
    graph, branch = output.current_tracer.graph, output.graphmend_conditional[-1]
    node = node_of(held("graphmend_value"))
    memory = set(storages_of(node))
    older = memory_of([*graph.find_nodes(op="placeholder"), *graph.find_nodes(op="get_attr")])
    if node.graph is graph and memory.isdisjoint(older | branch.memory):
        return False
    branch.copied |= memory
    return True


@at_trace_time(otherwise=None)
def _remember() -> None:
    output = translator().output
    branch = output.graphmend_conditional[-1]
    if node_of(held("graphmend_value")).meta["example_value"].requires_grad:
        forgo(output, "GM107-T01")
    if len(output.random_calls) > branch.draws:  # they are drawn before the graph, for both sides
        forgo(output, "GM107-T03")
    node = node_of(held("graphmend_given"))
    tensor = node.meta["example_value"]
    branch.memory |= set(storages_of(node))
    branch.given.append((tensor.dtype, tensor.device, tensor.layout, str(tensor.shape), str(tensor.stride())))


@at_trace_time(otherwise=None)
def _end() -> None:
    """Both sides have been traced: they have to give the same, but for the values."""
    output = translator().output
    branch = output.graphmend_conditional[-1]
    half = len(branch.given) // 2
    if branch.given[:half] != branch.given[half:]:
        forgo(output, "GM107-T02")
    output.graphmend_conditional.pop()
    if branch.copied:
        nodes = [*output.current_tracer.graph.nodes]
        captured = max(index for index, node in enumerate(nodes) if node.target is torch.ops.higher_order.cond)
        older = [node for node in nodes[:captured] if not branch.copied.isdisjoint(storages_of(node))]
        expect_unwritten(output, branch.site, older, nodes[captured:])


@at_trace_time(otherwise=None)
def _give_up(code: str) -> None:
    forgo(translator().output, code)


def forgo(output: Any, code: str = "GM107-T03") -> None:
    """Trace anew without the branch whose side is being traced, or, where none is, without any; unless it was done."""
    context = CompileContext.try_get()
    if output.graphmend_conditional:
        _forgone[output.graphmend_conditional[-1].site] = code
    elif context is None or hasattr(context, "graphmend_unconditional"):
        return
    else:
        context.graphmend_unconditional = code
    retrace.trace_anew("the sides of a branch cannot be captured")


def _look_at(output: Any, module: torch.fx.GraphModule) -> None:
    """Forgo the branches if a side writes to a tensor that is older than it."""
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond):
        for body in bodies_of(node, module):
            if not spares_inputs(body):
                forgo(output, "GM107-T04")
