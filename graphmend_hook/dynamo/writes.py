"""Which tensors the operations of a graph write to in place, and whether inputs of the graph share memory.

The fake tensors that stand for a tensor and its views share one storage.  Those of two inputs need not, though the
inputs themselves do: that is looked up in the real ones, and the compiled code is guarded to what was found.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import TensorWeakRef

from . import frame_guards
from .compilation import Compilation
from .trace import log

_WRITING_OPERATORS = {name for name in dir(operator) if name[0] == "i" and hasattr(operator, name[1:])} | {
    "ifloordiv",
    "itruediv",
    "iand",
    "ior",
    "setitem",
    "delitem",
}
_RANDOM = (
    *("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "alpha_dropout", "feature_", "rrelu"),
    *("uniform", "exponential", "permutation", "shuffle", "choice", "log_normal", "cauchy", "geometric", "binomial"),
    *("gumbel", "_standard_gamma", "_sample_dirichlet", "trunc_normal"),
)
# Functions and operators of numpy that give to the bit what torch gives; Dynamo has them as operations on tensors.
_NUMPY = frozenset(
    {
        *("abs", "add", "ceil", "floor", "floor_divide", "floordiv", "lcm", "maximum", "minimum", "mod", "mul"),
        *("multiply", "neg", "prod", "sqrt", "sub", "subtract", "truediv"),
        *("and_", "eq", "ge", "gt", "le", "lt", "ne", "or_"),
    }
)
# The argument of functions that update an operand in place, without a name that says so.
_UPDATING = {
    "batch_norm": "training",
    "instance_norm": "use_input_stats",
    "embedding": "max_norm",
    "embedding_bag": "max_norm",
}
_HARMLESS_HOMES = ("torch._C", "torch.functional", "torch.nn.functional", "_operator")
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def only_computes(node: torch.fx.Node) -> bool:
    """Does the operation neither write in place nor draw random numbers?"""
    return not node.op.startswith("call") or not (draws(node) or _writes(node) or _updates(node))


def operations(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The nodes of the graph in order, those of the bodies that an operation calls before the operation itself."""
    for node in module.graph.nodes:
        for body in bodies_of(node, module):
            yield from operations(body)
        if not node.op.startswith("call") or next(bodies_of(node, module), None) is None:
            yield node


def written_by(node: torch.fx.Node) -> set[int]:
    """The memory that the operation may write to; all that it is given, where nothing is known of it."""
    if not node.op.startswith("call"):
        return set()
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        named = dict(zip([argument.name for argument in schema.arguments], node.args)) | node.kwargs  # noqa: B905
        written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        operands = [named.get(name) for name in written]
    elif not _is_known(node) or _updates(node):
        operands = [node.args, node.kwargs]
    elif _writes(node):
        operands = [node.args[:1], node.kwargs.get("out")]
    else:
        return set()
    found: set[int] = set()
    torch.fx.node.map_arg(operands, lambda operand: found.update(storages_of(operand)))
    return found


def storages_of(node: torch.fx.Node) -> Iterator[int]:
    """What tells the memory of the tensors that the node stands for; aliases have the same."""
    values = node.meta.get("example_value")
    for value in values if isinstance(values, (tuple, list)) else (values,):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            yield value.untyped_storage()._cdata


def memory_of(nodes: Iterable[torch.fx.Node]) -> set[int]:
    """The same of several nodes."""
    return {storage for node in nodes for storage in storages_of(node)}


def spares_inputs(module: torch.fx.GraphModule) -> bool:
    """Does no operation of the graph write to what the graph is given?"""
    inputs = memory_of(module.graph.find_nodes(op="placeholder"))
    return all(inputs.isdisjoint(written_by(node)) for node in operations(module))


def are_apart(compilation: Compilation, relied_on: set[int], written: set[int]) -> bool:
    """Do the inputs of the graph in `relied_on` share no memory with others that are written to?

    If so, the code that is being compiled will run only where that is so.
    """
    inputs = tensor_inputs(compilation.output)
    changed = [node for node in inputs if not written.isdisjoint(storages_of(node))]
    kept = [node for node in inputs if not relied_on.isdisjoint(storages_of(node))] if changed else []
    pairs = [(one, other) for one in kept for other in changed if one is not other]
    for one, other in pairs:
        if not _share_nothing(_example(one), _example(other)):
            log.debug("inputs share memory: %s, %s", one, other)
            return False
    return compilation.output.export or _guard(compilation, pairs)


def _guard(compilation: Compilation, pairs: Sequence[tuple[torch.fx.Node, torch.fx.Node]]) -> bool:
    """Let the code run only where the two inputs of each pair share no memory; False if no guard can tell."""
    for pair in set(pairs):
        sources = [node.meta["grapharg"].source for node in pair]
        if frame_guards.inputs_at(sources, compilation) is None:
            return False
        frame_guards.install(compilation, pair, sources, _share_nothing, "they share no memory")
    return True


def _share_nothing(one: torch.Tensor, other: torch.Tensor) -> bool:
    first, second = _range_of(one), _range_of(other)
    return first.stop <= second.start or second.stop <= first.start


def tensor_inputs(output: Any) -> list[torch.fx.Node]:
    """The inputs of the graph that are tensors of the frame."""
    arguments = {node: node.meta.get("grapharg") for node in output.graph.find_nodes(op="placeholder")}
    return [node for node, argument in arguments.items() if argument is not None and argument.is_tensor]


def _example(node: torch.fx.Node) -> Any:
    tensor = node.meta["grapharg"]._example
    return tensor() if isinstance(tensor, TensorWeakRef) else tensor


def _range_of(tensor: Any) -> range:
    if not isinstance(tensor, torch.Tensor) or is_traceable_wrapper_subclass(tensor):
        return range(0)
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return range(0)
    storage = tensor.untyped_storage()
    return range(storage.data_ptr(), storage.data_ptr() + storage.nbytes())


def _is_known(node: torch.fx.Node) -> bool:
    """Does the operation write to nothing if its name does not say so?"""
    home = getattr(node.target, "__module__", None) or ""
    return (
        node.op == "call_method"
        or home.startswith(_HARMLESS_HOMES)
        or is_of_numpy(node)
        or getattr(torch, name_of(node), None) is node.target
    )


def is_of_torch(node: torch.fx.Node) -> bool:
    """Is it none of the operations that others have added?"""
    if not node.op.startswith("call"):
        return True
    if hasattr(node.target, "namespace"):
        return node.target.namespace in ("aten", "prims", "higher_order")
    return _is_known(node) or _is_wrapped(node)


def _writes(node: torch.fx.Node) -> bool:
    """Do the operation's name or arguments say that it writes in place?"""
    name = name_of(node)
    if getattr(node.target, "__module__", "") == "_operator":
        return name in _WRITING_OPERATORS
    return (name.endswith("_") and not name.endswith("__")) or "out" in node.kwargs or _is_asked_to_write(node)


def _updates(node: torch.fx.Node) -> bool:
    """Is it one of those that update an operand if an argument says so: running statistics, rows of a table?"""
    argument = _UPDATING.get(name_of(node))
    if argument is None:
        return False
    if getattr(node.target, "__module__", "") != "torch.nn.functional":
        return True
    return _argument(node, argument) not in (None, False)


def draws(node: torch.fx.Node) -> bool:
    """May it draw random numbers?  Dropout does not while its argument ``training`` is false."""
    if name_of(node) == "scaled_dot_product_attention":
        return bool(node.kwargs.get("dropout_p", (*node.args, 0, 0)[4]) != 0)  # after query, key, value, mask
    return name_of(node).startswith(_RANDOM) and _argument(node, "training") is not False


def _is_asked_to_write(node: torch.fx.Node) -> bool:
    """Is its argument ``inplace`` given, and true?"""
    return bool(_argument(node, "inplace"))


def _argument(node: torch.fx.Node, name: str) -> Any:
    """What the operation is given under that name; None where it is given none."""
    if getattr(node.target, "__module__", "") != "torch.nn.functional" or not inspect.isfunction(node.target):
        return node.kwargs.get(name)
    return inspect.signature(node.target).bind_partial(*node.args, **node.kwargs).arguments.get(name)


def is_of_numpy(node: torch.fx.Node) -> bool:
    """Is it one of the operations of numpy above?  A product of floats depends on the order."""
    if not _is_wrapped(node) or name_of(node) not in _NUMPY:
        return False
    return name_of(node) != "prod" or not node.meta["example_value"].is_floating_point()


def _is_wrapped(node: torch.fx.Node) -> bool:
    return type(node.target).__name__ in ("numpy_to_tensor_wrapper", "numpy_operator_wrapper")


def name_of(node: torch.fx.Node) -> str:
    """The name of the operation; up to torch 2.12 comparisons may be calls of methods such as `__eq__`."""
    if isinstance(node.target, str):
        return node.target.strip("_") if node.target in _COMPARISONS else node.target
    name: str = getattr(node.target, "__name__", "")
    return name.removeprefix("wrapped_") if _is_wrapped(node) else name


def bodies_of(node: torch.fx.Node, module: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """The graphs that a higher-order operation is given."""
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        for operand in node.all_input_nodes:
            body = getattr(module, str(operand.target), None) if operand.op == "get_attr" else None
            if isinstance(body, torch.fx.GraphModule):
                yield body
