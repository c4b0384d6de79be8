"""Steps of a loop that do nothing where an index is empty: what [Sweep] calls to trace them without asking.

The size of the index is a symbol of the graph.  Between `sweep` and `swept` the trace may only make operations that
cannot fail on no rows, and add to other tensors what stands at that index; anything else, a graph break among it, and
the frame is traced anew with the test as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from . import retrace, traced_sides
from .operations import is_total
from .tracer import OWN_FILES, at_trace_time, frames, held, log, node_of, record, site_of, translator

_MOST = 64  # steps of one trace
Site = tuple[str, int] | None


@dataclass(frozen=True)
class _Sweep:
    """An open one: where it is, its frame, the size of the index, and what the trace had done before."""

    site: Site
    frame: Any
    size: Any
    before: set[torch.fx.Node]
    changes: set[tuple[int, str]]


def sweep(graphmend_index: Any) -> bool:
    """Is what follows, up to `swept`, to be traced whether or not the index is empty?"""
    return is_dynamo_compiling() and isinstance(graphmend_index, torch.Tensor) and _begin()


def sweep_listed(graphmend_index: Any) -> None:
    """The begin of a step at a place that `candidates` gave, which there may be no hit at."""
    if is_dynamo_compiling() and not (isinstance(graphmend_index, torch.Tensor) and _begin()):
        _leave_lists()


def swept() -> None:
    """The end of what `sweep` has begun, if it has."""
    if is_dynamo_compiling():
        _end()


def candidates(graphmend_hits: Any) -> list[int] | None:
    """Every place of a list of hits, instead of those that are true; None if only those may be looked at."""
    if not is_dynamo_compiling() or not isinstance(graphmend_hits, torch.Tensor) or graphmend_hits.dim() != 1:
        return None
    return list(range(graphmend_hits.shape[0])) if _may_list() else None


def candidate_rows(hits: Any) -> list[torch.Tensor] | None:
    """Likewise of the rows of ``hits.nonzero()``: tensors of one number."""
    found = candidates(hits)
    return None if found is None else [torch.tensor([place], device=hits.device) for place in found]


def chosen(mask: Any, hits: Any, place: Any) -> Any:
    """The mask, or nothing of it where `hits`, which are truths, have none at the place."""
    return (mask != 0) & hits[place]


@at_trace_time(otherwise=False)
def _may_list() -> bool:
    output = translator().output
    size = node_of(held("graphmend_hits")).meta["example_value"].shape[0]
    if not _is_possible(output) or type(size) is not int:
        return False
    if not _is_within(output, size):
        return False
    state = _state(output)
    state.lists.append(site_of(translator()))
    state.is_listed = size > 0
    return True


@at_trace_time(otherwise=None)
def _leave_lists() -> None:
    state = _state(translator().output)
    _trace_without(state.lists[-1] if state.lists else None, state, "GM105-T01")


@at_trace_time(otherwise=False)
def _begin() -> bool:
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    output = translator().output
    index = node_of(held("graphmend_index")).meta["example_value"]
    if index.dim() != 1 or not free_unbacked_symbols(index.shape[0]):
        return False
    if not _is_possible(output) or not _is_within(output, 1):
        return False
    state = _state(output)
    state.steps += 1
    state.is_listed = False
    before = set(output.current_tracer.graph.nodes)
    state.open.append(_Sweep(site_of(translator()), _outside(), index.shape[0], before, traced_sides.changes(output)))
    retrace.expect_success()
    return True


@at_trace_time(otherwise=None)
def _end() -> None:
    output = translator().output
    state = _state(output)
    if not state.open or state.open[-1].frame is not _outside():
        return
    sweep = state.open.pop()
    made = [node for node in output.current_tracer.graph.nodes if node not in sweep.before]
    code = ""
    if traced_sides.changes(output) - sweep.changes:
        code = "GM105-T01"
    for node in made:
        code = code or _refusal(node, sweep.size)
    if code:
        _trace_without(sweep.site, state, code)


def _refusal(node: torch.fx.Node, size: Any) -> str:
    """The code of what is against making the operation for no rows; "" for nothing."""
    if not node.op.startswith("call"):
        return ""
    value = node.meta.get("example_value")
    if torch.is_grad_enabled() and isinstance(value, torch.Tensor) and value.requires_grad:
        return "GM105-T02"
    if _adds_at(node, size) or is_total(node):
        return ""
    log.debug("not in a step that may be empty: %s", node.format_node())
    return "GM105-T01"


def _adds_at(node: torch.fx.Node, size: Any) -> bool:
    """Is it ``target.index_add_(dim, index, source)``, and the index of that size?"""
    if node.op != "call_method" or node.target != "index_add_" or len(node.args) != 4 or node.kwargs:
        return False
    index = node.args[2]
    rows = index.meta["example_value"].numel() if isinstance(index, torch.fx.Node) else None
    return isinstance(rows, torch.SymInt) and bool(rows.node.expr == size.node.expr)


@dataclass
class _State:
    """Of one trace.  lists: where `candidates` gave every place; is_listed: and no step of the last has begun yet."""

    open: list[_Sweep]
    lists: list[Site]
    steps: int = 0
    is_listed: bool = False


def _state(output: Any) -> _State:
    if not hasattr(output, "graphmend_sweeps"):
        output.graphmend_sweeps = _State([], [])
        output.register_finalizer_fns.append(lambda _module: _judge(output.graphmend_sweeps))
    state: _State = output.graphmend_sweeps
    return state


def _judge(state: _State) -> None:
    """The graph ends inside a step, or before one: what follows the break would run for no rows too."""
    if state.open or state.is_listed:
        _trace_without(state.open[-1].site if state.open else state.lists[-1], state, "GM105-T01")


def _trace_without(site: Site, state: _State, code: str) -> None:
    traced_sides.harmful.update(state.lists)
    record(code)
    traced_sides.trace_without(site, "a step of a loop does more than compute")


def _is_possible(output: Any) -> bool:
    known = site_of(translator()) in traced_sides.harmful
    return not (known or output.export or retrace.is_uncaptured() or output.current_tracer.parent is not None)


def _is_within(output: Any, steps: int) -> bool:
    """Are so many more steps few enough?"""
    few = _state(output).steps + steps <= _MOST
    if not few:
        record("GM105-T03")
    return few


def _outside() -> Any:
    """The innermost frame outside this package."""
    return next(frame for frame in frames(translator()) if frame.f_code.co_filename not in OWN_FILES)
