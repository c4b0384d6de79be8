"""What [Where] says of a branch that is left as it was written; what it shares with [Trap] stands in `shared.codes`."""

from __future__ import annotations

from ...diagnostics import code, of_rules

CAUGHT = of_rules(
    "GM102-R16",
    sentence="no handler in the function could catch what a side raises",
    remedy="Move the statement out of the `try`, whichever exceptions its handlers name; a `finally` alone may stay around it.",
    because="a handler in the function could catch what a side raises or logs",
)
SEVERAL_CONDITIONALS = of_rules(
    "GM102-R18",
    sentence="a statement has one conditional expression on tensors",
    remedy="Give each conditional expression a statement of its own.",
    because="a statement has several conditional expressions on tensors",
)
NOT_ONE_ELEMENT = code(
    "GM102-T01",
    sentence="the test is a tensor with more or less than one element, or one with behaviour of its own",
    remedy="Ask for one element: `.any()`, `.all()` or an index.",
    because="the test has more or less than one element, or is a tensor subclass, or a meta tensor",
)
SIDES_DIFFER = code(
    "GM102-T02",
    sentence="the sides give tensors that differ in type, dtype, shape, strides, device or requires_grad, that share memory, or that a selection would lay out otherwise",
    remedy="Make the sides alike: the same dtype, shape, device and memory format, and tensors of their own (`x.clone()`).",
    because="the sides' tensors differ in type, dtype, shape, strides, device, layout or `requires_grad`, share memory, or a selection would lay them out otherwise",
)
VALUES_DIFFER = code(
    "GM102-T03",
    sentence="the sides give different Python values",
    remedy="Let the sides give tensors, or the same Python value; what else depends on data has to break.",
)
MAY_FAIL = code(
    "GM102-T04",
    sentence="a side has an operation that could fail, or have an effect, on these values if it is not taken",
    remedy="Move the operation in front of the branch if it may run always, or use `torch.where` on inputs where it is safe.",
)
UNTAKEN_RAISES = code(
    "GM102-T05",
    sentence="a side that is not taken would raise while it is traced",
    remedy="Let the side work on these values whether it is taken or not: look for `None` and for missing keys in front of the branch.",
    because="a side that is not taken would raise while it is traced (`None.attr`, `KeyError`)",
)
GRADIENTS_DIFFER = code(
    "GM102-T06",
    sentence="gradients would differ: a singular operation, or a tensor that one side alone depends on",
    remedy="Compute under `torch.no_grad()` where no gradient is wanted; else compute what stands right of an `and` in the line before, copy a slice with gaps (`x[::2].contiguous()`), and let both sides use the same tensors.",
)
IN_TRANSFORM = code(
    "GM102-T07",
    sentence="the branch stands inside vmap, grad or another function transform",
    remedy="Branch outside the function transform, or use `torch.where`.",
)
INNER_BRANCH = code(
    "GM102-T08",
    sentence="a side branches on tensor data in a way that cannot be evaluated ahead of time",
    remedy="Write the inner choice as an `if` statement of its own, or make it in front of the outer branch.",
)
ATTRIBUTE_OF_CLASS = code(
    "GM102-T09",
    sentence="a side stores to an attribute that the object does not have by itself: only its class has it, or has a descriptor of that name",
    remedy="Give the object the attribute in `__init__`.",
    because="the object does not have the attribute by itself: only its class has it, or has a descriptor of that name",
)
WRITES = code(
    "GM102-T10",
    sentence="a side writes to a tensor that is older than it, where a gradient would show it, autograd has kept what it was, or elements share memory",
    remedy="Give a new tensor to a name (`x = torch.where(mask, new, x)`), or write under `torch.no_grad()` before anything reads it.",
)
HARMFUL = code(
    "GM102-T11",
    sentence="the sides have effects beside what they bind, or what they give is written in place later, or was written to as a transposed tensor before",
    remedy="Give what the side computes to names, and do the rest after the branch; do not write to the result in place.",
)
SIZE_FIXED = code(
    "GM102-T12",
    sentence="a size would become a fixed number, or that of another tensor, for what a side does with it",
    remedy="Compute what the side makes of the size in front of the branch, or mark the size of the other input alike.",
    because="a side would make a size that is a symbol a fixed number, or that of another tensor: every call would have to keep to it",
)
ENDS_GRAPH = code(
    "GM102-T13",
    sentence="a side ends the graph, or fails, while it is traced",
    remedy="Move what ends the graph in front of the branch, or into a function that is called after the compiled one.",
)
COSTS_TOO_MUCH = code(
    "GM102-T14",
    sentence="a side calls something that would cost too much where it is not taken",
    remedy="Leave the branch as it is, if its side is meant to save work; else compute what the side calls in front of the branch.",
)
LOOP_KEPT = code(
    "GM102-R19",
    sentence="a `while` on data computes names that are bound before it, and does no more",
    remedy="Let the body compute and assign tensors, and count; do the rest behind the loop, or give the loop a known number of steps and leave it by `break`.",
    because="a `while` on data does more than to compute names that are bound before it: branches, stores, `break`, `else`",
)
LOOP_LEFT = code(
    "GM102-T15",
    sentence="what goes round in a `while` on data is a tensor that changes its shape, requires a gradient, or is written to, or no tensor and no count; or its body cannot be one function",
    remedy="Keep shapes, dtypes and devices as they are, run the loop under `torch.no_grad()`, or give it a known number of steps and leave it by `break`.",
)
