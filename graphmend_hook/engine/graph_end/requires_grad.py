"""Inputs of a graph on which the frame calls ``requires_grad_()``, and what operations do with such tensors.

Dynamo does not trace that call, and need not: operations behind it see the input as it is then, and the input itself is
set when the graph is called.  Dynamo guards on an input as the frame finds it; so a frame whose input requires a
gradient by now has other code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from ...source import tensor_ops
from ..attempt.attempt import Feature
from ..attempt.compilation import Compilation
from ..door.tracer import Trace
from ..door.variables import Variable, is_plain_tensor
from ..epilogue.rerun import Plan, keep
from ..facts.operations import is_of_torch, name_of, written_nodes
from ..facts.uses import Uses
from ..facts.writes import dimensions_of, memory_of
from .order import Compiler, Verdict, Wrapper

UNTOLD = Feature("a tensor that would require a gradient for nothing is not told to require one")


@dataclass
class _Inputs:
    """The inputs that an attempt tells; is_told: a call does it."""

    nodes: list[torch.fx.Node] = field(default_factory=list)
    is_told: bool = False


def tell_as_written(compilation: Compilation) -> NoReturn:
    """Trace the frame anew, with each tensor told as it is written."""
    compilation.without(UNTOLD.at(), reason="that a tensor requires a gradient can be told")


def tell_input(trace: Trace, node: torch.fx.Node, tensor: Variable) -> bool:
    """Tell an input of the graph that nothing has used yet; False if it is none, or if it may be told too early.

    It is told before the graph runs, and so before a guard that stands before the statement raises.
    """
    compilation = trace.compilation
    if tensor.source is None or node.op != "placeholder" or node.users or not is_plain_tensor(tensor):
        return False
    if compilation.is_saved or compilation.of(Plan).may_raise:
        return False
    node.meta["example_value"].requires_grad_()
    tensor.realize().requires_grad = True
    compilation.of(_Inputs).nodes.append(node)
    keep(compilation)  # it runs again as it was written, where its graph fails
    compilation.judge(Verdict.INPUTS, _judge_inputs)
    compilation.wrap_compiler(Wrapper.TOLD, _tell)
    compilation.at_end(_expect_graph)
    return True


def _judge_inputs(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    given, uses = module.graph.find_nodes(op="placeholder"), Uses(module)
    if not all(node in given and _is_read(node, uses) for node in compilation.of(_Inputs).nodes):
        tell_as_written(compilation)


def _tell(compilation: Compilation, module: torch.fx.GraphModule, compiler: Compiler) -> Compiler:
    inputs, given = compilation.of(_Inputs), [*module.graph.find_nodes(op="placeholder")]
    places = [given.index(node) for node in inputs.nodes]

    def compile_and_tell(graph: torch.fx.GraphModule, examples: Sequence[Any], *args: Any) -> Callable[..., Any]:
        with _telling(examples, places, even_after=False):  # as a backend sees them
            compiled = compiler(graph, examples, *args)
        return _called(compiled, places)

    inputs.is_told = True
    return compile_and_tell


def _expect_graph(compilation: Compilation, error: BaseException | None) -> None:
    """Where nothing is left for a graph to do, there is none whose call could tell them."""
    if error is None and not compilation.of(_Inputs).is_told:
        tell_as_written(compilation)


def _is_read(node: torch.fx.Node, uses: Uses) -> bool:
    """Does the graph use it, so that it stays an input, and write to it nowhere?"""
    users = [*uses.of(node)]
    return bool(users) and not any(operand in written_nodes(user) for operand, user in users)


def _called(graph: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """`graph`, which tells its inputs at these places; it leaves them alone if it fails."""

    def call(*inputs: Any) -> Any:
        with _telling(inputs, places, even_after=True):
            return graph(*inputs)

    return call


@contextlib.contextmanager
def _telling(inputs: Sequence[Any], places: Sequence[int], *, even_after: bool) -> Iterator[None]:
    """Let those of the inputs that are at these places require a gradient, after the block if it does not fail."""
    told = [inputs[place] for place in places if not inputs[place].requires_grad]
    for tensor in told:
        tensor.requires_grad_()
    try:
        yield
        told = [] if even_after else told
    finally:
        for tensor in told:
            tensor.requires_grad_(False)


def hands_on(user: torch.fx.Node, operand: torch.fx.Node, written: set[int]) -> bool:
    """Is it an operation that has a gradient for the operand, and does the same whether the operand requires one?

    What an operation saves for that gradient nothing may write to later: eager would say so in the backward pass.
    """
    if not user.op.startswith("call") or not is_of_torch(user) or operand in written_nodes(user):
        return False
    if name_of(user).rstrip("_") in tensor_ops.LINEAR_KEEPING_NOTHING:
        return True
    others = [node for node in user.all_input_nodes if node is not operand]
    # matmul looks at the smaller one
    is_largest = all(dimensions_of(operand) >= dimensions_of(node) for node in others)
    is_first = [*user.args[:1]] == [operand] and operand not in (*user.args[1:], *user.kwargs.values())
    is_linear = name_of(user) in tensor_ops.LINEAR and is_first and is_largest
    return is_linear and memory_of(others).isdisjoint(written)
