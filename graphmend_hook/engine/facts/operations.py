"""What the operations of a graph do: what each may write to, draw, or give back, as far as torch says.

An operator, and a function or method of torch that has one of its name, is known by its schema (`schemas`); a function
of torch in Python is watched (`fake_runs`); what neither can tell is here or in `tensor_ops`, by hand.  Whatever is
left may do anything.  `tests/compiled/test_operations.py` measures all of it on real tensors.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import torch

from ...source import tensor_ops
from ...source.library_functions import NAMESPACE
from ..door.variables import is_known, is_unbacked, is_wrapper
from . import fake_runs, schemas
from .schemas import NOTHING, UNKNOWN, Facts

# Functions and methods of torch by the operator that they are, where the names differ.
_STANDS_FOR = (
    dict.fromkeys(("bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"), "to")
    | dict.fromkeys(("cdouble", "cfloat"), "to")
    | dict.fromkeys(("BoolTensor", "FloatTensor", "IntTensor", "LongTensor", "new_tensor"), "tensor")
    | {
        "unique": "_unique2",
        "type": "to",
        "_get_data_attr": "detach",
        "from_numpy": "as_tensor",
        "ndimension": "dim",
        "nelement": "numel",
    }
)
# Functions that switch a mode of the trace, or assert something: they compute nothing.
_SWITCHING = frozenset(
    {
        *("_enter_autocast", "_exit_autocast", "_enter_inference_mode", "_exit_inference_mode"),
        *("_set_grad_enabled", "_set_fwd_grad_enabled", "_saved_tensors_hooks_disable", "_saved_tensors_hooks_enable"),
        *("_check", "_check_is_size", "_check_value", "_check_index", "_check_type", "_check_tensor_all", "_assert"),
        *("_constrain_as_size", "_log_api_usage_once", "lazy_load_decompositions"),
        *("_vmap_increment_nesting", "_vmap_decrement_nesting"),
        *("_grad_increment_nesting", "_grad_decrement_nesting", "_jvp_increment_nesting", "_jvp_decrement_nesting"),
        "set_inplace_requires_grad_allowed",
    }
)
_MODES = ("_enter_autocast", "_exit_autocast", "_set_grad_enabled")
# Functions that wrap a tensor for a function transform, or take it out, or give the gradient that the transform is for.
_WRAPPING = frozenset(
    {
        *("_add_batch_dim", "_remove_batch_dim", "_wrap_for_grad", "_unwrap_for_grad", "_unwrap_batched"),
        *("_make_dual", "_unpack_dual", "get_unwrapped", "_set_tensor_requires_grad", "_autograd_grad"),
    }
)
# A function of Dynamo's: ``x.data = y`` is ``x.set_(y)`` and this, after which autograd has seen no write.
_UNCOUNTING = "_lower_version_count_by_1"
REPLACING_MEMORY = frozenset({"set_", _UNCOUNTING})
_BY_HAND = {
    **dict.fromkeys(_SWITCHING, NOTHING),
    **dict.fromkeys(_WRAPPING, Facts(aliases=True)),
    _UNCOUNTING: Facts(frozenset({0}), aliases=True, changes_form=True),
}
# Functions and methods in Python that do what their operator does; some cannot be watched, as data decides a shape.
_THIN = frozenset({"split", "unique", "unique_consecutive"})
_COMPOSITES = ("torch.functional", "torch.nn.functional")  # modules of functions in Python that only compute
_REFERENCES = "torch._refs"  # of functions in Python that are what operators are; Dynamo traces `torch.tensor` so
# Attributes of a tensor by the operation that they are; from torch 2.14 on an operator stands for `T`, and for `data`
# always does.
_ATTRIBUTES = {"T": "t", "numpy_T": "t", "mT": "transpose", "_get_data_attr": "detach"}
_READING = Facts(aliases=True, is_data_dependent=True)  # an attribute or an item of a tensor
_CONVERTING = Facts(aliases=True, communicates=True)  # between a tensor of several processes and one of this
_STORING = Facts(frozenset({0}))  # an item
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_DIVISIONS = frozenset({"div", "divide", "floor_divide", "fmod", "remainder"})
_COMMON = (torch.bool, torch.int32, torch.int64, torch.float32, torch.float64)
_FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
_WIDE_FLOATS = frozenset({torch.float32, torch.float64})
_PERHAPS_TENSOR = (torch.Tensor, type(None))
# By the names of the module `operator`, those that write to their first operand (``iadd``) among them.
_WRITING = {f"i{name.rstrip('_')}": name for name in ("add", "sub", "mul", "pow", *tensor_ops.OPERATORS)}
_OPERATORS = tensor_ops.OPERATORS | {
    name: f"{tensor_ops.OPERATORS.get(plain, plain)}_" for name, plain in _WRITING.items()
}
_OPERATOR, _OF_NUMBERS = "_operator", ("_operator", "math", "builtins")


def facts_of(node: torch.fx.Node) -> Facts:
    """What the operation may do; of what is not known, everything, as of what the class of a tensor decides."""
    wrappers = {type(value) for each in (node, *node.all_input_nodes) for value in values_of(each) if is_wrapper(value)}
    if not wrappers or not node.op.startswith("call"):
        return facts_by_name(node)
    if not all(map(_is_distributed, wrappers)):
        return UNKNOWN
    return replace(facts_by_name(node), communicates=True)


def converts(node: torch.fx.Node) -> bool:
    """Does it make a tensor of several processes of one of this process, or the other way round?"""
    if not node.op.startswith("call") or name_of(node) not in tensor_ops.OF_DISTRIBUTED:
        return False
    wrapped = (value for each in (node, *node.all_input_nodes[:1]) for value in values_of(each))
    return any(is_wrapper(value) and _is_distributed(type(value)) for value in wrapped)


def _is_distributed(kind: type) -> bool:
    return f"{kind.__module__}.{kind.__qualname__}" in tensor_ops.DISTRIBUTED


def values_of(node: torch.fx.Node) -> tuple[Any, ...]:
    """What stands for what the node gives: one value, or some."""
    values = node.meta.get("example_value")
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def facts_by_name(node: torch.fx.Node) -> Facts:
    """What the operation does on plain tensors."""
    if not node.op.startswith("call"):
        return NOTHING
    if converts(node):
        return _CONVERTING
    facts = _of_method(node) if node.op == "call_method" else _of_function(node)
    if node.kwargs.get("out") is not None and facts.writes is not None:
        return facts | Facts(frozenset({"out"}), aliases=True)
    return facts


def only_computes(node: torch.fx.Node) -> bool:
    """Does the operation neither write in place nor draw random numbers, nor wait for other processes?"""
    facts = facts_of(node)
    return not (facts.draws or facts.communicates) and facts.writes is not None and not written_nodes(node)


def only_writes_memory(node: torch.fx.Node) -> bool:
    """Is it known what it may write to; and does it no more than write, to memory that stays as it is?"""
    facts = facts_of(node)
    return facts.writes is not None and not (facts.draws or facts.communicates or facts.changes_form)


def only_changes_shape(node: torch.fx.Node) -> bool:
    """Does it give what it is called on another shape, of the same memory: ``x.unsqueeze_(-1)``?"""
    facts, name = facts_of(node), name_of(node)
    is_known = facts.writes == frozenset({0, "self"}) and not (facts.draws or facts.communicates)
    return is_known and facts.changes_form and name.endswith("_") and name[:-1] in tensor_ops.VIEWS


def is_transforming(node: torch.fx.Node) -> bool:
    """Does it stand where a function transform begins or ends, or hands tensors on?"""
    return name_of(node) in _WRAPPING


def is_of_torch(node: torch.fx.Node) -> bool:
    """Is it none of the operations that others have added?"""
    return isinstance(node.target, torch._ops.HigherOrderOperator) or facts_of(node).is_of_torch


def written_nodes(node: torch.fx.Node, facts: Facts | None = None) -> list[torch.fx.Node]:
    """What the operation may write to of its operands; all of them, where nothing is known of it.

    facts: what it may do, where that is not what `facts_of` says.
    """
    writes = (facts or facts_of(node)).writes
    operands: dict[int | str, Any] = {**dict(enumerate(node.args)), **node.kwargs}
    written = [operand for name, operand in operands.items() if writes is None or name in writes]
    found: list[torch.fx.Node] = []
    torch.fx.node.map_arg(written, found.append)
    return found


def divides_whole_numbers(node: torch.fx.Node) -> bool:
    """May it divide a whole number by zero?"""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.is_floating_point():
        return False
    return node.op.startswith("call") and name_of(node).rstrip("_") in _DIVISIONS


def is_cheap(node: torch.fx.Node) -> bool:
    """Does the result follow from the operands, at a cost of about one look at each of their elements?"""
    return only_computes(node) and (is_of_numpy(node) or (_is_named(node) and name_of(node) in tensor_ops.CHEAP))


def only_writes(node: torch.fx.Node) -> bool:
    """Is it a cheap operation that writes to its first operand what follows from all of them?"""
    name, facts = name_of(node), facts_of(node)
    if not _is_named(node) or facts.draws or facts.changes_form or facts.writes is None or not node.args:
        return False
    if name == "setitem":
        return facts == _STORING
    return facts.writes <= {0, "self"} and name[-1:] == "_" and name[:-1] in tensor_ops.CHEAP_IN_PLACE


def is_total(node: torch.fx.Node) -> bool:
    """Does it compute, and not fail on a tensor of no rows?"""
    name = name_of(node)
    is_known = name in tensor_ops.TOTAL or (name in tensor_ops.TOTAL_OF_FLOATS and _is_of_floats(node))
    return is_known and _is_named(node) and only_computes(node) and _is_defined_on_nothing(node) and not _may_warn(node)


def _may_warn(node: torch.fx.Node) -> bool:
    """Does it warn of how it is called: with no dimension, by an old option, or as it makes complex numbers real?"""
    if name_of(node) in tensor_ops.OF_A_DIMENSION:
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
        return dimension is None
    values = [each.meta.get("example_value") for each in (node, *node.all_input_nodes)]
    made, *given = [isinstance(value, torch.Tensor) and value.is_complex() for value in values]
    has_old = any(node.kwargs.get(option) is not None for option in ("reduce", "size_average"))
    return has_old or (any(given) and not made)


def _is_defined_on_nothing(node: torch.fx.Node) -> bool:
    """Is it so, if it is a norm?  One by the greatest, or by the inverse of elements, is not."""
    if name_of(node) not in tensor_ops.NORMS:
        return True
    options = node.kwargs
    order = options.get("p", node.args[1] if len(node.args) > 1 else None)
    return order in (None, "fro") or (type(order) in (int, float) and 0 <= order < math.inf)


def _is_of_floats(node: torch.fx.Node) -> bool:
    """Is it given floats of one dtype that each device calculates with, and whole numbers or truths beside them?"""
    operands = [operand.meta.get("example_value") for operand in node.all_input_nodes]
    dtypes = [operand.dtype for operand in operands if isinstance(operand, torch.Tensor)]
    floats = {dtype for dtype in dtypes if dtype.is_floating_point}
    return len(floats) == 1 and dtypes[0] in floats and all(dtype in _COMMON for dtype in dtypes)


def finds_extreme(node: torch.fx.Node) -> bool:
    """Does it find the least or the greatest of all elements of its operand, and fail where there is none?"""
    alone = len(node.args) == 1 and not node.kwargs
    return alone and name_of(node) in tensor_ops.NOT_EMPTY and _is_named(node)


def is_plain(node: torch.fx.Node) -> bool:
    """Does it only compute, and give the same at little cost where it is computed once more?"""
    facts = facts_of(node)
    if not only_computes(node) or not _is_named(node):
        return False
    if name_of(node) in tensor_ops.CHEAP and (facts is _READING or not facts.is_data_dependent):
        return True
    return facts.is_pointwise or facts.is_reduction


def may_fail(node: torch.fx.Node) -> bool:
    """May the operation fail on the data, or for want of any, where tracing it did not?  So may what is not known."""
    if is_of_numpy(node) or _reads_input(node) or str(node.target) == f"{NAMESPACE}.calculated.default":
        return False
    if not is_plain(node) or divides_whole_numbers(node):
        return True
    operands = [each.meta.get("example_value") for each in node.all_input_nodes]
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    name, facts = name_of(node), facts_of(node)
    if name in tensor_ops.OF_SHAPES:
        return any(is_unbacked(tensor.shape) for tensor in tensors)
    if name in tensor_ops.INDEXED:
        parts = node.args[1] if len(node.args) > 1 else ()
        lists = any(isinstance(part, list) for part in (parts if isinstance(parts, tuple) else (parts,)))
        return lists or any(tensor.dtype is not torch.bool for tensor in tensors[1:])
    if any(tensor.dtype not in _COMMON for tensor in tensors):
        return True  # there may be no kernel
    if name in tensor_ops.TOTAL:
        are_mixed = name not in tensor_ops.SPECULABLE and len({tensor.dtype for tensor in tensors}) > 1
        return are_mixed and not _is_autocast(node)
    if finds_extreme(node) or facts.is_reduction:
        return any(is_unbacked(tensor.shape) or not is_known(tensor.numel() > 0) for tensor in tensors)
    return not (facts.is_pointwise or name.rstrip("_") in tensor_ops.HARMLESS)


def _is_autocast(node: torch.fx.Node) -> bool:
    """Does autocast convert the operands?"""
    return bool(torch._C._is_any_autocast_enabled()) or bool(autocasts(node))


def autocasts(node: torch.fx.Node) -> list[tuple[Any, ...]]:
    """The arguments of the autocasts of the graph that are on at the node, the innermost last."""
    entered: list[tuple[Any, ...]] = []
    for each in node.graph.nodes:
        if each is node:
            break
        if name_of(each) == "_enter_autocast":
            entered.append(each.args)
        elif name_of(each) == "_exit_autocast":
            entered.pop()
    return entered


def _reads_input(node: torch.fx.Node) -> bool:
    """Does it read a number of Python's, which the frame has as an input?  Dynamo hands a float in as a tensor ()."""
    if node.target != "item":
        return False
    given = next((each.meta.get("grapharg") for each in node.all_input_nodes), None)
    return given is not None and given.pass_arg_as_tensor and not given.is_tensor


def is_steady(node: torch.fx.Node) -> bool:
    """Can it fail neither on any data, nor for want of any?  Tracing it did not."""
    if not may_fail(node) or name_of(node) in _MODES:
        return True
    if name_of(node) not in tensor_ops.STEADY or not _is_named(node) or "out" in node.kwargs:
        return False
    if node.kwargs.get("check_errors", False) is not False:
        return False
    tensors = [value for each in node.all_input_nodes for value in values_of(each) if isinstance(value, torch.Tensor)]
    if any(is_unbacked(tensor.shape) or not is_known(tensor.numel() > 0) for tensor in tensors):
        return False
    if name_of(node) in tensor_ops.OF_WIDE_FLOATS and any(tensor.dtype not in _WIDE_FLOATS for tensor in tensors):
        return False
    if name_of(node) in tensor_ops.SPREADS and not _are_spread(node, tensors):
        return False
    if name_of(node) in tensor_ops.WARNING and node.kwargs.get(tensor_ops.WARNING[name_of(node)]) in (None, "mean"):
        return False
    are_plain = all(tensor.dtype in _FLOATS and tensor.layout is torch.strided for tensor in tensors)
    return are_plain and (len({tensor.dtype for tensor in tensors}) == 1 or _is_autocast(node))


def stores_steadily(node: torch.fx.Node) -> bool:
    """Does it write, element by element, to its first operand, and cannot fail on any data?"""
    facts = facts_of(node)
    if not facts.is_pointwise or facts.writes is None or not facts.writes <= {0, "self"} or divides_whole_numbers(node):
        return False
    values = (value for each in node.all_input_nodes for value in values_of(each))
    return all(value.dtype in _COMMON for value in values if isinstance(value, torch.Tensor))


def _are_spread(node: torch.fx.Node, tensors: list[torch.Tensor]) -> bool:
    """Is each of the spreads that the operation gives one of several elements?  Of one it warns."""
    given = [value for value in values_of(node) if isinstance(value, torch.Tensor)]
    fewest = all(is_known(tensor.numel() >= 2 * each.numel()) for tensor in tensors for each in given)
    return fewest and "correction" not in node.kwargs


def is_of_numpy(node: torch.fx.Node) -> bool:
    """Is it one of the operations of numpy that give what torch gives?  Products and powers of floats need not."""
    if not _is_wrapped(node) or _numpy_name(node) not in tensor_ops.NUMPY:
        return False
    return _numpy_name(node) not in ("pow", "power", "prod") or not node.meta["example_value"].is_floating_point()


def name_of(node: torch.fx.Node) -> str:
    """The name that `tensor_ops` has for the operation; up to torch 2.12 comparisons may be methods (`__eq__`)."""
    if isinstance(node.target, str):
        return node.target.strip("_") if node.target in _COMPARISONS else node.target
    name: str = getattr(node.target, "__name__", "")
    if node.target is torch.Tensor and len(node.args) == 1 and isinstance(node.args[0], (list, tuple)):
        return "tensor"
    if node.target is getattr:
        return _ATTRIBUTES.get(str(node.args[1]), name)
    names = _OPERATORS if getattr(node.target, "__module__", "") == _OPERATOR else _ATTRIBUTES
    return names.get(name, name)


def _is_named(node: torch.fx.Node) -> bool:
    """Is its name one of torch's?"""
    return facts_of(node).is_of_torch and not _is_wrapped(node)


def _of_method(node: torch.fx.Node) -> Facts:
    receiver = node.args[0] if node.args else None
    if isinstance(receiver, torch.fx.Node) and not isinstance(receiver.meta.get("example_value"), _PERHAPS_TENSOR):
        return UNKNOWN
    if node.target in _COMPARISONS:
        return _named(name_of(node), node)
    method = getattr(torch.Tensor, str(node.target), None)
    if isinstance(method, FunctionType) and node.target not in _THIN:
        return _watched(method, node) if method.__module__ == "torch._tensor" else UNKNOWN
    return UNKNOWN if method is None else _named(str(node.target), node)


def _of_function(node: torch.fx.Node) -> Facts:
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):
        return schemas.of_call((target,), node.args, node.kwargs)
    if isinstance(target, torch._ops.OpOverloadPacket):
        return schemas.of_call(schemas.overloads_of(target), node.args, node.kwargs)
    home, name = getattr(target, "__module__", None) or "", getattr(target, "__name__", "")
    if isinstance(target, MethodDescriptorType) and getattr(torch.Tensor, name, None) is target:
        return _named(name, node)  # ``torch.Tensor.set_``
    if target is torch.autograd.grad:
        return Facts(aliases=True)  # what is given for the results may be what is given back
    if _is_wrapped(node):
        return _watched(target, node)
    if _is_of_numbers(node, home, name):
        return NOTHING
    if home == _OPERATOR:
        special = {"getitem": _READING, "setitem": _STORING}.get(name)
        return special or _named(name_of(node), node)
    if target is getattr:
        return _READING
    if home != "torch" and not home.startswith("torch."):
        return UNKNOWN
    if name in _BY_HAND:
        return _BY_HAND[name]
    if isinstance(target, FunctionType):
        if home not in (*_COMPOSITES, _REFERENCES) or getattr(sys.modules[home], name, None) is not target:
            return UNKNOWN
        return _named(name, node) if name in _THIN or home == _REFERENCES else _watched(target, node)
    return _named(name_of(node), node) if isinstance(target, (BuiltinFunctionType, type)) else UNKNOWN


def _named(name: str, node: torch.fx.Node) -> Facts:
    """What torch's operator of that name does, called as the node is."""
    overloads = schemas.overloads_named(_STANDS_FOR.get(name, name))
    return schemas.of_call(overloads, node.args, node.kwargs)


def _watched(function: Any, node: torch.fx.Node) -> Facts:
    try:
        args, options = fake_arguments(node)
    except KeyError:
        return UNKNOWN
    return fake_runs.of_function(function, args, options)


def fake_arguments(node: torch.fx.Node) -> Any:
    """The arguments of the operation, with fake tensors, and its keywords; raises KeyError where one is not known."""
    return torch.fx.node.map_arg((node.args, node.kwargs), lambda operand: operand.meta["example_value"])


def _is_of_numbers(node: torch.fx.Node, home: str, name: str) -> bool:
    """Is it an operation on numbers of Python that gives one, or a size?"""
    makes_size = node.target is torch.Size
    if not (makes_size or home in _OF_NUMBERS or (home.startswith("torch") and name.startswith(("sym_", "_sym_")))):
        return False
    values = [operand.meta.get("example_value") for operand in (*node.all_input_nodes, *([] if makes_size else [node]))]
    numbers = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
    return all(isinstance(value, numbers) for value in values)


def _is_wrapped(node: torch.fx.Node) -> bool:
    wrappers = ("numpy_to_tensor_wrapper", "numpy_method_wrapper", "numpy_operator_wrapper")
    return type(node.target).__name__ in wrappers


def _numpy_name(node: torch.fx.Node) -> str:
    name: str = getattr(node.target, "__name__", "")
    return name.removeprefix("wrapped_")
