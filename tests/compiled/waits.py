"""Counts the waits for a device: those of a program in eager, and those of the graph that is compiled of it.

No device is needed: what is compiled is given tensors of a device that hold no data, and what runs in eager is watched
on the CPU, by the operations that wait for a device where their tensors are on one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from graphmend_hook.engine.epilogue import delivery, queue

DEVICE = "cuda" if torch.backends.cuda.is_built() else "lazy"
_aten = torch.ops.aten
_MOVING = (_aten._to_copy, _aten.copy, _aten.copy_)
_INDEXING = (_aten.index, _aten.index_put, _aten.index_put_)
# Their results have as many elements as the data says, or are numbers of Python.
_COUNTING = frozenset(
    {
        *(_aten.nonzero, _aten._unique2, _aten.unique_dim, _aten.unique_consecutive, _aten.masked_select),
        *(_aten.repeat_interleave, _aten.bincount, _aten._local_scalar_dense, _aten.is_nonzero),
    }
)


class _CompiledError(BaseException):
    """The graph would run now, for which it has no data.  No handler of a program's catches it."""


class Waits(TorchDispatchMode):
    """Counts what would wait for a device if the tensors, which are on the CPU, were on one."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += _counts(operator, args)
        return operator(*args, **(kwargs or {}))


class _Lists(TorchFunctionMode):
    """Counts lists of numbers, each of which is read by one copy: a mode of operations sees nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function is torch.Tensor.tolist
        return function(*args, **(kwargs or {}))


def eager_waits(function: Callable[..., Any], *inputs: Any) -> int:
    """How often eager would wait for the device of the inputs."""
    with torch.no_grad(), _Lists() as lists, Waits() as waits:
        function(*inputs)
    return lists.count + waits.count


def compiled_waits(function: Callable[..., Any], *inputs: Any) -> int:
    """How often its one graph waits, and what is delivered behind it.  A module among the inputs is moved for good."""
    graphs: list[torch.fx.GraphModule] = []
    delivered: list[queue.Item] = []

    def compile_graph(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        graphs.append(graph)

        def run(*_: Any) -> None:
            raise _CompiledError

        return run

    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, backend=aot_autograd(fw_compiler=compile_graph), dynamic=False)
    with torch.no_grad(), mock.patch.object(delivery, "deliver_after_failure", delivered.extend):
        try:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                compiled(*(on_device(given, mode) for given in inputs))
        except _CompiledError:
            pass
    assert len(graphs) == 1, len(graphs)
    broken = dict(torch._dynamo.utils.counters["graph_break"])
    assert not broken, broken
    conditions = [item for item in delivered if item[0] is not queue.ITEM]
    return sum(map(does_wait, graphs[0].graph.nodes)) + bool(conditions)


def on_device(given: Any, mode: FakeTensorMode) -> Any:
    """The same on the device, without data."""
    if isinstance(given, torch.nn.Module):
        return given._apply(lambda tensor: on_device(tensor, mode))
    with mode:
        return tree_map_only(torch.Tensor, lambda tensor: torch.empty_like(tensor, device=DEVICE), given)


def does_wait(node: torch.fx.Node) -> bool:
    """Does an operation of AOTAutograd's wait for the device?"""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    given = [each.meta.get("val") if isinstance(each, torch.fx.Node) else each for each in tree_leaves(node.args)]
    if not any(_is_on(value, DEVICE) for value in given):
        return False
    to_host = any(_is_on(value, "cpu") for value in tree_leaves(node.meta.get("val")))
    moves = node.target.overloadpacket in _MOVING and not node.kwargs.get("non_blocking", False)
    return _counts(node.target, given) or (to_host and moves)


def _is_on(value: object, device: str) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == device


def _counts(operator: Any, args: Any) -> bool:
    """Does the operation have to know what its tensors hold, to tell how large its result is?"""
    if operator.overloadpacket in _INDEXING:
        return any(isinstance(each, torch.Tensor) and each.dtype is torch.bool for each in tree_leaves(args)[1:])
    return operator.overloadpacket in _COUNTING
