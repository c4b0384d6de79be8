"""What [Grad] calls where a tensor is told to require a gradient: would anybody notice if it were not?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ...dynamo.compilation import Compilation, trace_anew
from ...dynamo.operations import only_computes, written_nodes
from ...dynamo.place import is_in_another_body, is_transformed
from ...dynamo.question import question
from ...dynamo.restart import expect_success, is_as_written
from ...dynamo.trace import Trace, asks_for_gradients
from ...dynamo.uses import Uses
from ...dynamo.variables import Variable, tensor_node
from ...dynamo.writes import fakes_of, memory_of, memory_of_inference
from ..branches.traced_operations import is_tensor
from ..effects.traced_defer import record

CALLED = ("is_trained_anyway",)  # by rewritten code


@dataclass
class Told:
    """The tensors that an attempt has not told to require a gradient, and the code that would have."""

    tensors: list[torch.fx.Node] = field(default_factory=list)
    code: set[CodeType | None] = field(default_factory=set)


@dataclass
class ToldOrders:
    """Whether further attempts tell each tensor, as it is written."""

    as_written: bool = False


def is_trained_anyway(tensor: Any) -> bool:
    """Does nobody notice if ``tensor.requires_grad = True`` is not executed?"""
    if not is_dynamo_compiling() or not is_tensor(tensor):
        return False
    if tensor.requires_grad:
        return bool(tensor.is_leaf)  # eager lets no other be told
    if not tensor.dtype.is_floating_point or not torch.is_grad_enabled() or is_transformed():
        record("GM106-T01")
        return False
    if not _is_intermediate(tensor):
        record("GM106-T02")
        return False
    expect_success()
    return True


@question(otherwise=False)
def _is_intermediate(trace: Trace, tensor: Variable) -> bool:
    """Is it an intermediate of the graph?  Then it is seen at the end whether it was told in vain."""
    compilation, node = trace.compilation, tensor_node(tensor)
    if is_as_written(trace) or compilation.attempts.of(ToldOrders).as_written or is_in_another_body(trace):
        return False
    if tensor.source is not None or node.op == "placeholder":
        return False
    if not memory_of([node]).isdisjoint(memory_of_inference(trace.graph)):
        return False
    told = compilation.of(Told)
    told.tensors.append(node)
    told.code.add(trace.code)
    compilation.judge(_judge)
    return True


def _judge(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    told = compilation.of(Told)
    if not _can_be_told(told.tensors, module) and not asks_for_gradients(compilation, told.code):
        return
    compilation.attempts.of(ToldOrders).as_written = True
    trace_anew("that a tensor requires a gradient can be told")


def _can_be_told(tensors: Iterable[torch.fx.Node], module: torch.fx.GraphModule) -> bool:
    """Is there anything but operations that give what requires a gradient anyway?

    What they give of the tensors alone requires none here, and would in eager: so nobody may be able to tell of it.
    """
    uses, waiting, seen = Uses(module), [*tensors], {*tensors}
    while waiting:
        node = waiting.pop()
        for operand, user in uses.of(node):
            if not user.op.startswith("call") or operand in written_nodes(user):
                return True
            given = [fake for fake in fakes_of(user) if fake.is_floating_point() or fake.is_complex()]
            if all(fake.requires_grad for fake in given):
                continue
            if not only_computes(user):
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False
