"""Random numbers that a region draws: they are drawn where the region is taken, and the generator stays else.

``torch.randn_like(x)`` becomes an operator that is told whether the region is taken, and ``x.uniform_()`` a copy of
what it gives.  ``dropout(x, 0.1)`` becomes a product with what eager multiplies by.  This is so on a CPU, whose
generator can be left as it was; on a GPU the graph would have to wait for the predicate.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from .door.tracer import Trace
from .door.variables import is_unbacked, is_wrapper, same_sizes
from .drawing_operator import Draws, UnknownCallError, encoded, in_place, noise, operator
from .epilogue.deferral import is_autocast
from .facts.operations import facts_of, is_of_torch, written_nodes
from .facts.writes import fakes_of
from .region import Regions, conditions
from .shelter import add, taken_at

# Functions that say of tensors without memory which shape they would give.
_SHAPED = frozenset({"multinomial", "normal", "rand_like", "randint_like", "randn_like"})
_MADE = frozenset({"normal", "rand", "randint", "randn", "randperm"})  # of sizes
_DROPOUT = (F.dropout, torch.dropout)


def predicate(trace: Trace, node: torch.fx.Node) -> list[torch.fx.Node]:
    """Let the operation draw only where all open regions are taken, if it draws from torch's own generator of a CPU.

    Gives the operations that stand in its place, itself the last.
    """
    before = node.prev
    _predicate(trace, node)
    made = [node]
    while made[-1].prev is not before:
        made.append(made[-1].prev)
    return made[::-1]


def _predicate(trace: Trace, node: torch.fx.Node) -> None:
    if node in trace.compilation.of(Regions).predicated:
        return  # of a statement in the one at hand
    facts, is_dropout = facts_of(node), node.op == "call_function" and node.target in _DROPOUT
    draws = facts.draws and facts.writes is not None and not facts.communicates and is_of_torch(node)
    if not (draws or is_dropout) or not _is_plain(node):
        return
    if trace.compilation.is_saved or trace.is_in_a_body or not conditions(trace):
        return
    try:
        if is_dropout:
            _drop_out(trace, node)
        elif node.target is F.scaled_dot_product_attention:
            _attend(trace, node)
        elif written := written_nodes(node):
            if node.op == "call_method" and written == [*node.args[:1]] and _may_be_copied_to(node):
                target, *args = node.args
                drawn = _drawn(trace, node, in_place, (target, node.target, *args), node.kwargs)
                node.target, node.args, node.kwargs = "copy_", (target, drawn), {}
        elif not node.meta["example_value"].requires_grad:
            operands = _operands(trace, node, node.target, node.args, node.kwargs)
            node.op, node.target, node.args, node.kwargs = "call_function", operator(), operands, {}
            trace.compilation.of(Regions).predicated.add(node)
    except UnknownCallError:
        return


def _may_be_copied_to(node: torch.fx.Node) -> bool:
    """Does it draw the same in a tensor like the one that it writes to?  By strides, or by gradients, it may not."""
    target, *others = node.all_input_nodes
    is_dense = all(torch._prims_common.is_non_overlapping_and_dense_or_false(fake) for fake in fakes_of(target))
    return is_dense and not any(fake.requires_grad for each in others for fake in fakes_of(each))


def _is_plain(node: torch.fx.Node) -> bool:
    """Are all tensors on a CPU, and does it give one?"""
    values = [fake for each in (node, *node.all_input_nodes) for fake in fakes_of(each)]
    is_one = isinstance(node.meta.get("example_value"), torch.Tensor)
    return is_one and all(
        fake.device.type == "cpu" and fake.layout is torch.strided and not is_wrapper(fake) for fake in values
    )


def _drop_out(trace: Trace, node: torch.fx.Node) -> None:
    given = dict(zip(("input", "p", "training", "inplace"), node.args, strict=False)) | {**node.kwargs}
    tensor, probability, is_in_place = given.get("input"), given.get("p", 0.5), given.get("inplace", False)
    if given.get("training", given.get("train", True)) is not True or type(is_in_place) is not bool:
        return
    if (
        type(probability) not in (float, int)
        or not 0 < probability <= 1
        or not node.meta["example_value"].is_floating_point()
    ):
        return
    # Eager draws nothing where all elements are dropped; AOTAutograd does.
    drawn = 0.0 if probability == 1 else _drawn(trace, node, noise, (tensor, float(probability)), {})
    node.op, node.target, node.args, node.kwargs = "call_method", "mul_" if is_in_place else "mul", (tensor, drawn), {}


def _attend(trace: Trace, node: torch.fx.Node) -> None:
    """Attention with dropout, operation by operation as eager computes it on a CPU."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = dict.fromkeys(names) | dict(zip(names, node.args, strict=False)) | {**node.kwargs}
    query, key, value, mask, scale = (given[name] for name in ("query", "key", "value", "attn_mask", "scale"))
    probability, (fake,) = given["dropout_p"], fakes_of(query)
    width = fake.shape[-1]
    is_known = (type(width) is int and width > 0) if scale is None else (type(scale) is float and scale > 0)
    is_plain = fake.dtype in (torch.float32, torch.float64) and not given["is_causal"] and not given["enable_gqa"]
    if not (is_known and is_plain) or is_autocast() or type(probability) is not float or not 0 < probability < 1:
        return
    root = math.sqrt(1 / math.sqrt(width) if scale is None else scale)
    scaled = add(trace, node, torch.mul, query, root)
    turned = add(trace, node, torch.mul, add(trace, node, torch.transpose, key, -2, -1), root)
    weights = add(trace, node, torch.matmul, scaled, turned)
    if mask is not None:
        weights = add(trace, node, torch.add, weights, _as_summand(trace, node, mask, fake.dtype))
    weights = add(trace, node, torch._safe_softmax, weights, -1)
    weights = add(trace, node, torch.mul, weights, _drawn(trace, weights.next, noise, (weights, probability), {}))
    node.target, node.args, node.kwargs = torch.matmul, (weights, value), {}


def _as_summand(trace: Trace, node: torch.fx.Node, mask: torch.fx.Node, dtype: torch.dtype) -> torch.fx.Node:
    (fake,) = fakes_of(mask)
    if fake.dtype is not torch.bool:
        return mask
    zeros = add(trace, node, torch.mul, add(trace, node, torch.Tensor.to, mask, dtype), 0.0)
    return add(trace, node, torch.masked_fill, zeros, add(trace, node, torch.logical_not, mask), -math.inf)


def _drawn(trace: Trace, node: torch.fx.Node, function: Any, args: Any, options: Any) -> torch.fx.Node:
    """What the operator gives that calls the function; raises UnknownCallError where it cannot."""
    drawn = add(trace, node, operator(), *_operands(trace, node, function, args, options))
    trace.compilation.of(Regions).predicated.add(drawn)
    return drawn


def _operands(trace: Trace, node: torch.fx.Node, function: Any, args: Any, options: Any) -> tuple[Any, ...]:
    """Those of the operator that calls the function, right before the node, or in its place."""
    call, tensors, numbers = encoded(function, args, options)
    name = getattr(function, "__name__", function)
    is_like = function is noise or (bool(tensors) and _are_alike(node, tensors[0]))
    has_bounds = bool(numbers) and name == "randint"
    if has_bounds or is_unbacked([each.meta["example_value"] for each in numbers]):
        raise UnknownCallError  # it may fail on them where the region is not taken
    if not is_like and name not in (_SHAPED if tensors else _MADE):
        raise UnknownCallError  # its shape cannot be told without it
    taken = taken_at(trace, node)
    if taken is None or taken.meta["example_value"].device.type != "cpu":
        raise UnknownCallError
    return taken, call, tensors, numbers, is_like, trace.compilation.of(Draws).number()


def _are_alike(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    (one,), (like,) = fakes_of(node), fakes_of(other)
    has_same_form = same_sizes(one.shape, like.shape) is True and same_sizes(one.stride(), like.stride()) is True
    return has_same_form and one.dtype is like.dtype
