"""Dead code: AOTAutograd removes what no output uses, with the random numbers that it draws and what it raises.

Behind a break it stays: what is asked for its truth is a result of the graph that ends there, and the program keeps
what was drawn in a name.  So these are used in a graph that would have ended there.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ...source import tensor_ops
from ..attempt.as_written import mending
from ..attempt.compilation import Compilation
from ..door.variables import Variable, is_tensor, is_wrapper, tensor_node
from ..facts.operations import converts, facts_by_name, may_fail, name_of, written_nodes
from ..facts.writes import bodies_of, memory_of
from . import donated_buffers, saved_tensors
from .order import Change, Wrapper

_TEXT = "graphmend_hook: a count is never below zero"
_FUNCTION = "autograd_function_apply"  # a function of autograd: its bodies are forward and backward pass


@dataclass
class _Asked:
    """The nodes whose truth, or numbers, an attempt has asked for."""

    nodes: set[torch.fx.Node] = field(default_factory=set)


class _UnusableError(Exception):
    """An operation gives nothing that an assertion could be made of."""


def remember(compilation: Compilation, variable: Variable) -> bool:
    """Is it a tensor?  Then a break where it is asked for would have made it a result of the graph."""
    if not is_tensor(variable):
        return False
    compilation.of(_Asked).nodes.add(tensor_node(variable))
    see_to(compilation)
    output = compilation.output
    if not output.export and "remove_unused_graphargs" not in vars(output):
        output.remove_unused_graphargs = compilation.before(output.remove_unused_graphargs, _use_items)
    return True


def remember_all(compilation: Compilation, value: Variable) -> None:
    """The same of all tensors in a value, such as a list."""
    from torch._dynamo.variables.base import VariableTracker

    VariableTracker.visit(lambda part: remember(compilation, part), value)


def see_to(compilation: Compilation) -> None:
    """Keep a backend from removing, or computing anew in the backward pass, what a graph break would have kept."""
    if not compilation.output.export:
        compilation.change(Change.USED, _use_all)
        compilation.wrap_compiler(Wrapper.DONATED, donated_buffers.tell_apart)
    compilation.change(Change.SAVED, saved_tensors.keep_results)


def _use_all(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let an assertion that always holds use what the output of the graph does not rest on, or that of a body in it.

    That is each draw, and of what was asked for, what may fail.
    """
    with _or_as_written(compilation):
        _use_in(module, compilation.of(_Asked).nodes)


def _use_items(compilation: Compilation) -> None:
    """Use what is to be used of the items that Dynamo itself drops before the graph is judged."""
    with _or_as_written(compilation):
        for node in [*_unused(compilation.output.graph, None, compilation.of(_Asked).nodes)]:
            tensor, place = _tensor_in(node) or (node, None)
            if tensor.target is operator.getitem and place is None:
                _use(node)


@contextlib.contextmanager
def _or_as_written(compilation: Compilation) -> Iterator[None]:
    """Where there is nothing to assert, as inside a function transform, the frame is traced as it was written."""
    try:
        yield
    except _UnusableError:
        if bet := mending(compilation, even_one_graph=True):
            compilation.without(bet, reason="what nothing uses cannot be kept")


def _use_in(module: torch.fx.GraphModule, asked: set[torch.fx.Node], is_backward: bool = False) -> None:
    for node in module.graph.nodes:
        for place, body in enumerate(bodies_of(module, node)):
            _use_in(body, asked, is_backward or (place == 1 and name_of(node) == _FUNCTION))
    unused = [*_unused(module.graph, module, asked)]
    if unused and is_backward:  # AOTAutograd would move it into the forward pass, and draws with it
        raise _UnusableError
    for node in unused:
        _use(node)
    if unused:
        module.recompile()


def _unused(
    graph: torch.fx.Graph, module: torch.fx.GraphModule | None, asked: set[torch.fx.Node]
) -> Iterator[torch.fx.Node]:
    """The operations that have to be used, and are not, the last first; what `asked` is made of is asked for as well.

    An operation is used if the numbers of the output rest on it, of an assertion, or of the memory of an input.
    module: that of the graph, which has the bodies of its operations, once it is complete.
    """
    used, asked_for = {graph.output_node()}, _known(memory_of, [node for node in graph.nodes if node in asked])
    seen = _known(memory_of, [node for node in graph.nodes if not node.op.startswith("call")])
    overwritten: set[int] = set()  # later
    for node in reversed([*graph.nodes]):
        written = _known(memory_of, _written_nodes(node))
        if node in asked or not written.isdisjoint(asked_for):
            asked |= {node, *node.all_input_nodes}
            asked_for |= _known(memory_of, node.all_input_nodes)
        is_known = facts_by_name(node).writes is not None  # else it may write to nothing, and be dropped
        is_used = node in used or name_of(node).startswith("_assert") or (is_known and not written.isdisjoint(seen))
        is_used = is_used and _known(memory_of, [node]).isdisjoint(overwritten)
        if not is_used and node.op.startswith("call") and _has_effect(module, node, node in asked):
            is_used = True
            yield node
        if is_used:
            operands = [*_rests_on(node)]
            used.update(operands)
            seen |= _known(memory_of, operands)
        overwritten |= written


def _written_nodes(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What it writes to: the class of a tensor that has an operation of torch makes it what it is on plain tensors."""
    return written_nodes(node, facts_by_name(node))


def _known(memory: Callable[[Any], set[int]], of: Any) -> set[int]:
    """Such memory; none where a wrapper of a function transform has none of its own: there nothing can be asserted."""
    try:
        return memory(of)
    except NotImplementedError:
        return set()


def _rests_on(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The operands whose numbers what it gives rests on, for certain: a function of others need not look at them."""
    operands, written = node.all_input_nodes, _written_nodes(node)
    if not node.op.startswith("call") or name_of(node).startswith("_assert"):
        yield from operands
    elif converts(node):
        yield from operands[:1]
    elif not (isinstance(node.target, torch._ops.HigherOrderOperator) or facts_by_name(node).is_of_torch):
        return
    elif written:  # over which it may write
        yield from (operand for operand in operands if operand not in written)
    elif name_of(node) in tensor_ops.VIEWS:  # others say which shape, or dtype
        yield from (operand for operand in operands if operand is node.args[0])
    elif _looks_at_all(node):
        yield from operands


def _looks_at_all(node: torch.fx.Node) -> bool:
    name, facts = name_of(node), facts_by_name(node)
    return name in tensor_ops.LOOKING or ((facts.is_pointwise or facts.is_reduction) and not name.endswith("_like"))


def _has_effect(module: torch.fx.GraphModule | None, node: torch.fx.Node, is_asked_for: bool) -> bool:
    """Does it draw; or may it fail, if it is asked for?  Numbers of Python rest on tensors, which are seen to."""
    if _tensor_in(node) is None:
        return False
    return (is_asked_for and may_fail(node)) or _draws(module, node)


def _draws(module: torch.fx.GraphModule | None, node: torch.fx.Node) -> bool:
    bodies = bodies_of(module, node) if module is not None else []
    if bodies:
        return any(_draws(body, inner) for body in bodies for inner in body.graph.nodes)
    facts = facts_by_name(node)
    return facts.draws and facts.writes is not None  # what is not known counts where it is asked for


def _tensor_in(node: torch.fx.Node) -> tuple[torch.fx.Node, int | None] | None:
    """The first tensor that it gives, as a node and, in a tuple, the place in its value; else what it writes to.

    The value of an operation with a body is not kept, but its items are.
    """
    if not node.op.startswith("call"):
        return None
    value = node.meta.get("example_value")
    if isinstance(value, torch.Tensor):
        return node, None
    if isinstance(value, (tuple, list)):
        place = next((place for place, item in enumerate(value) if isinstance(item, torch.Tensor)), None)
        return None if place is None else (node, place)
    items = [user for user in node.users if user.target is operator.getitem and user.args[0] is node]
    written = _written_nodes(node) if facts_by_name(node).writes is not None else []
    found = (each for each in (*items, *written) if isinstance(each.meta.get("example_value"), torch.Tensor))
    tensor = next(found, None)
    return None if tensor is None else (tensor, None)


def _use(node: torch.fx.Node) -> None:
    """Assert something of the numbers that it gives, or writes."""
    found = _tensor_in(node)
    assert found is not None
    graph, (tensor, place) = node.graph, found
    value = tensor.meta["example_value"]
    value = value if place is None else value[place]
    if (
        is_wrapper(value)
        or torch._C._functorch.is_functorch_wrapped_tensor(value)
        or value.layout is not torch.strided
        or value.is_quantized
    ):
        raise _UnusableError
    last = tensor if tensor in node.users else node  # behind an item of what it gives

    def add(kind: str, target: Any, *operands: Any) -> torch.fx.Node:
        nonlocal last
        with graph.inserting_after(last):
            last = graph.create_node(kind, target, operands)
        return last

    if place is not None:
        tensor = add("call_function", operator.getitem, tensor, place)
    if value.is_floating_point() and value.dtype.itemsize == 1:
        tensor = add("call_method", "float", tensor)
    finite = add("call_method", "isfinite", tensor)
    holds = add("call_function", operator.ge, add("call_method", "sum", finite), 0)
    add("call_function", torch._assert_async, holds, _TEXT)
