"""What [Grad] calls where a tensor is told to require a gradient: would anybody notice if it were not?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.as_written import is_as_written
from ...engine.attempt.compilation import Compilation
from ...engine.attempt.restart import expect_success
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, tensor_node
from ...engine.epilogue.deferral import is_in_another_body, is_transformed
from ...engine.facts.object_identity import asks_for_gradients, watch_gradients
from ...engine.facts.operations import name_of, written_nodes
from ...engine.facts.uses import Uses
from ...engine.facts.writes import fakes_of, memory_of, memory_of_inference, operations, written_by
from ...engine.graph_end import traced_gradients  # noqa: F401  where the program asks for gradients itself
from ...engine.graph_end.order import Verdict
from ...engine.graph_end.requires_grad import UNTOLD, hands_on, tell_as_written, tell_input
from ..defer.traced import record
from ..shared.traced_operations import is_tensor
from .codes import CAN_BE_TOLD, NOT_PLAIN


@dataclass
class Told:
    """The tensors that an attempt has not told to require a gradient."""

    tensors: dict[torch.fx.Node, bool] = field(default_factory=dict)  # with whether gradients were on


def is_trained_anyway(tensor: Any) -> bool:
    """Does nobody notice if ``tensor.requires_grad = True`` is not executed?"""
    if not in_trace() or not is_tensor(tensor):
        return False
    if tensor.requires_grad:
        return bool(tensor.is_leaf)  # eager lets no other be told
    if not tensor.dtype.is_floating_point or is_transformed():
        record(NOT_PLAIN)
        return False
    if not _is_seen_to(tensor):
        record(CAN_BE_TOLD)
        return False
    expect_success()
    return True


@question(otherwise=False)
def _is_seen_to(trace: Trace, tensor: Variable) -> bool:
    """Is it an intermediate of the graph, of which is seen at the end whether it was told in vain?

    Or an input, which is told when the graph is called?
    """
    compilation, node = trace.compilation, tensor_node(tensor)
    if is_as_written(trace) or not compilation.allows(UNTOLD) or is_in_another_body(trace):
        return False
    if not memory_of([node]).isdisjoint(memory_of_inference(trace.graph)):
        return False
    if tensor.source is not None or node.op == "placeholder":
        return tell_input(trace, node, tensor)
    told = compilation.of(Told)
    watch_gradients(compilation)
    told.tensors[node] = torch.is_grad_enabled()
    compilation.judge(Verdict.GRADIENTS, _judge)
    return True


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    told = compilation.of(Told)
    if asks_for_gradients(compilation) or _can_be_told(told.tensors, module):
        tell_as_written(compilation)


def _can_be_told(tensors: Mapping[torch.fx.Node, bool], module: torch.fx.GraphModule) -> bool:
    """Is there anything but operations that give what requires a gradient anyway, or that give none to anything?

    What they give of the tensors alone requires none here, and would in eager: so nobody may be able to tell of it.
    """
    if any(map(_asks_for_a_gradient, operations(module))):
        return True
    uses, waiting, seen = Uses(module), [*tensors], {*tensors}
    without = set().union(*(_without_gradients(node, on) for node, on in tensors.items()))
    written = set().union(*map(written_by, operations(module)))
    while waiting:
        node = waiting.pop()
        for operand, user in uses.of(node):
            if not hands_on(user, operand, written):
                return True
            if all(fake.requires_grad for fake in fakes_of(user)):
                continue
            if written_nodes(user):
                return True  # what it writes to would require one, by whatever name
            if user in without and _shares_nothing(user, operand):
                continue
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def _asks_for_a_gradient(node: torch.fx.Node) -> bool:
    return (getattr(node.target, "__module__", None) or "").startswith("torch.autograd")


def _without_gradients(told: torch.fx.Node, on: bool) -> Iterator[torch.fx.Node]:
    """The operations that run while gradients are off, behind a tensor that was told while they were `on`, or off.

    None where the graph enters inference mode, or leaves it: what is on behind that is not looked for.
    """
    nodes = told.graph.nodes
    if any(name_of(node) == "_enter_inference_mode" for node in nodes):
        return
    for node in itertools.dropwhile(
        lambda each: each is not told, nodes
    ):  # no node, where Dynamo has dropped `requires_grad`
        if name_of(node) == "_set_grad_enabled":
            on = node.args != (False,)
        elif not on:
            yield node


def _shares_nothing(node: torch.fx.Node, operand: torch.fx.Node) -> bool:
    """Is what the operation gives no view of the operand, which writes would tell of?"""
    memory = memory_of([node])
    return bool(memory) and memory.isdisjoint(memory_of([operand]))
