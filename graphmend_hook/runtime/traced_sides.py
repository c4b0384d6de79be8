"""Questions about the sides of a branch: what may be done in them, and what they have done once they are traced."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch

from .operations import only_computes
from .retrace import trace_anew
from .tracer import at_trace_time, fake_of, held, log, python_of, site_of, translator
from .writes import are_apart, memory_of, operations, written_by

Site = tuple[str, int] | None


@at_trace_time(otherwise=False)
def succeeds() -> bool:
    """Would the call that `runtime.speculation.attempt` is about to make succeed, and is the function the one named?

    The call is made on the fake tensors that stand for the traced ones, so it can only fail on types and shapes, as
    tracing it would; but a failure while tracing ends the trace.
    """
    name, function = python_of(held("graphmend_name")), python_of(held("graphmend_function"))
    homes = (torch, torch.nn.functional, torch.Tensor, operator)
    if not any(getattr(home, name, None) is function for home in homes):
        return False
    arguments, options = fake_of(held("graphmend_arguments")), fake_of(held("graphmend_options"))
    try:
        with translator().fake_mode:
            function(*arguments, **options)
    except Exception as error:
        log.debug("%s would fail: %s", name, error)
        return False
    return True


@at_trace_time(otherwise=False)
def stores_plainly(attribute: str) -> bool:
    """Does assigning to that attribute of the object at hand store the value, and nothing else?"""
    kind = held("graphmend_owner").python_type()
    plain = kind.__setattr__ in (object.__setattr__, torch.nn.Module.__setattr__)
    return plain and not hasattr(getattr(kind, attribute, None), "__set__")


@at_trace_time(otherwise=False)
def reads_plainly(attribute: str) -> bool:
    """Does reading that attribute of the object at hand give what is stored, without running code of its class?"""
    kind = held("graphmend_owner").python_type()
    looked_up = getattr(kind, "__getattr__", torch.nn.Module.__getattr__)
    usual = kind.__getattribute__ is object.__getattribute__ and looked_up is torch.nn.Module.__getattr__
    return usual and not hasattr(getattr(kind, attribute, None), "__get__")


@at_trace_time(otherwise=False)
def defined_in(modules: tuple[str, ...]) -> bool:
    """Is the function at hand defined in one of those modules?"""
    return getattr(python_of(held("graphmend_check")), "__module__", "") in modules


@at_trace_time(otherwise=False)
def begin_sides() -> bool:
    """Remember what the trace has done so far, for `end_sides`; False where the site may not be a branch."""
    tracer = translator()
    if site_of(tracer) in harmful:
        return False
    output = tracer.output
    if not hasattr(output, "graphmend_sides"):
        output.graphmend_sides = []
    output.graphmend_sides.append((set(output.current_tracer.graph.nodes), changes(output)))
    return True


@at_trace_time(otherwise=None)
def end_sides(attribute: str = "") -> None:
    """Since `begin_sides`, did the trace only compute, and store that attribute?  If not, trace anew, without."""
    tracer = translator()
    output = tracer.output
    nodes, before = output.graphmend_sides.pop()
    made = [node for node in output.current_tracer.graph.nodes if node not in nodes]
    output.graphmend_made = set(made)
    stored = {change for change in changes(output) - before if not attribute or change[1] != attribute}
    if stored or not all(map(only_computes, made)):
        trace_without(site_of(tracer), "what a branch may not do happens in it")


watch, harmless = begin_sides, end_sides  # of the statement that creates a lazy attribute


@at_trace_time(otherwise=False)
def gradients_agree() -> bool:
    """Do both sides' values depend on the same tensors that require a gradient?

    If not, a tensor that only one side uses would get zeros, where it has no gradient if that side is not taken.
    """
    if not torch.is_grad_enabled():
        return True
    roots = [held(key).as_proxy().node for key in ("graphmend_left", "graphmend_right")]
    made = translator().output.graphmend_made
    return _trained(roots[0], made) == _trained(roots[1], made)


@at_trace_time(otherwise=None)
def expect_no_writes() -> None:
    """Trace anew, without the site, if what is selected here, or what it is selected from, is written in place later.

    Which of the two tensors a later write changes is for the data to decide.
    """
    tracer = translator()
    *sources, result = [
        held(key).as_proxy().node for key in ("graphmend_left", "graphmend_right", "graphmend_selected")
    ]
    expect_unwritten(tracer.output, site_of(tracer), sources, [result])


def expect_unwritten(output: Any, site: Site, sources: list[torch.fx.Node], results: list[torch.fx.Node]) -> None:
    """Trace anew, without the site, if the memory of one of the nodes is written to after the last of them.

    Likewise if it may be behind the graph break that the graph ends in: if both are still there.
    """
    if "graphmend_reads" not in vars(output):
        output.graphmend_reads = []
    if not output.graphmend_reads:
        output.register_finalizer_fns.append(lambda module: _judge_writes(output, module))
    output.graphmend_reads.append(_Read(site, sources, results))


@at_trace_time(otherwise=None)
def accept_write() -> None:
    """The write that has just been traced is the branch's own."""
    output = translator().output
    if getattr(output, "graphmend_reads", ()):
        write, site = next(reversed(output.current_tracer.graph.nodes)), output.graphmend_reads[-1].site
        for read in output.graphmend_reads:
            if read.site == site:
                read.own_writes.append(write)


@dataclass(frozen=True)
class _Read:
    """What a branch at `site` selects from, and what it selects."""

    site: Site
    sources: list[torch.fx.Node]
    results: list[torch.fx.Node]
    own_writes: list[torch.fx.Node] = field(default_factory=list)


def _judge_writes(output: Any, module: torch.fx.GraphModule) -> None:
    order = {node: place for place, node in enumerate(operations(module))}
    writes = [(node, place, written) for node, place in order.items() if (written := written_by(node))]
    for read in output.graphmend_reads:
        nodes = [*read.sources, *read.results]
        begin = max(order.get(node, -1) for node in nodes)
        relied_on = memory_of(nodes)
        later = [(node, written) for node, place, written in writes if place > begin and node not in read.own_writes]
        written = {storage for _, storages in later for storage in storages}
        if not written.isdisjoint(relied_on) or not are_apart(output, relied_on, written):
            trace_without(read.site, "a tensor that a branch selects is written in place later")
        if output.compile_subgraph_reason.graph_break and _both_remain(read, module):
            trace_without(read.site, "a tensor that a branch selects may be written in place behind a graph break")


def _both_remain(read: _Read, module: torch.fx.GraphModule) -> bool:
    """Are what is selected, and what it is selected from, both there when the graph has run?"""
    given = module.graph.output_node().all_input_nodes
    others = [node for node in (*given, *module.graph.find_nodes(op="placeholder")) if node not in read.results]
    return any(node in read.results for node in given) and not memory_of(read.sources).isdisjoint(memory_of(others))


def _trained(root: torch.fx.Node, made: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """The tensors that require a gradient, made outside the sides, on which `root` depends."""
    found, waiting, seen = set(), [root], {root}
    while waiting:
        node = waiting.pop()
        if not getattr(node.meta.get("example_value"), "requires_grad", True):
            continue
        if node not in made or node.op == "placeholder":
            found.add(node)
            continue
        waiting += [value for value in node.all_input_nodes if value not in seen]
        seen.update(node.all_input_nodes)
    return found


harmful: set[Site] = {None}  # the sites that may not be traced as branches


def trace_without(site: Site, reason: str) -> None:
    harmful.add(site)
    trace_anew(reason)


def changes(output: Any) -> set[tuple[int, str]]:
    """The attributes that the trace has stored on objects older than it, and the containers that it has changed."""
    effects = output.side_effects
    stored = {
        (id(variable), attribute)
        for variable, attributes in effects.store_attr_mutations.items()
        if not type(variable.mutation_type).__name__.endswith("New")
        for attribute in attributes
    }
    return stored | {
        (id(variable), "")
        for variable in effects.id_to_variable.values()
        if getattr(variable.mutation_type, "is_modified", False)
    }
