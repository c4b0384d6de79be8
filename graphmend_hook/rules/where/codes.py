"""Why a branch is left as it was written while Dynamo traces: codes and sentences, by the name of the rule."""

from __future__ import annotations

_WHERE = {
    "GM102-T01": "the test is a tensor with more or less than one element, or one with behaviour of its own",
    "GM102-T02": "the sides give tensors that differ in type, dtype, shape, strides, device or requires_grad, that "
    "share memory, or that a selection would lay out otherwise",
    "GM102-T03": "the sides give different Python values",
    "GM102-T04": "a side has an operation that could fail, or have an effect, on these values if it is not taken",
    "GM102-T05": "a side that is not taken would raise while it is traced",
    "GM102-T06": "gradients would differ: a singular operation, or a tensor that one side alone depends on",
    "GM102-T07": "the branch stands inside vmap, grad or another function transform",
    "GM102-T08": "a side branches on tensor data in a way that cannot be evaluated ahead of time",
    "GM102-T09": "a side assigns to an attribute through a setter, or to one that only the class has, or code could "
    "read too early what it stores",
    "GM102-T10": "a side writes under a mask to memory that is older than the graph, or in a way that could fail or "
    "that a gradient would show",
    "GM102-T11": "the sides have effects beside what they bind, or what they give is written in place later, or was "
    "written to as a transposed tensor before",
    "GM102-T12": "a size would become a fixed number, or that of another tensor, for what a side does with it",
    "GM102-T13": "a side ends the graph, or fails, while it is traced",
}
REFUSALS = {"where": _WHERE}
