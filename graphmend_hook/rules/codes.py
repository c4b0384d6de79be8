"""Why a statement is left as it was written while Dynamo traces: codes and sentences; loads no rule, and no torch."""

from __future__ import annotations

from ..dynamo import refusals

_DEFER = {
    "GM101-T01": "the call is not print, warnings.warn or a method of a logger",
    "GM101-T02": "an argument is a tensor whose text shows its autograd state, or a subclass of Tensor",
    "GM101-T03": "an argument is a tensor inside vmap, grad or another function transform",
    "GM101-T04": "an argument is an object whose text may change before the effect is delivered, or is too big to copy",
    "GM101-T05": "the call stands in a context manager or behind an assignment that may redirect it",
    "GM101-T06": "the call stands in the body of a higher-order operator that forbids side effects",
    "GM101-T07": "a warnings filter turns warnings into errors, which must be raised where they arise",
    "GM101-T08": "activation checkpointing would make the call again in backward; only fullgraph=True leaves that out",
    "GM101-T09": "this torch, or this way to compile, generates code that the epilogue cannot reach",
    "GM101-T10": "a handler around a traced call could catch what the effect raises",
    "GM101-T11": "the frame needs its breaks: compiling it without them fails, or an `assert` in it stands in a `try`",
    "GM101-T12": "the effect stands in a `finally` and would also follow the failure of a guard",
    "GM101-T13": "the number that is drawn is looked at, or an operation of another library may draw as well",
}
_WHERE = {
    "GM102-T01": "the test is a tensor with more or less than one element, or one with behaviour of its own",
    "GM102-T02": "the sides give tensors that differ in type, dtype, shape, strides, device or requires_grad",
    "GM102-T03": "the sides give different Python values",
    "GM102-T04": "a side has an operation that could fail, or have an effect, on these values if it is not taken",
    "GM102-T05": "a side that is not taken would raise while it is traced",
    "GM102-T06": "gradients would differ: a singular operation, or a tensor that one side alone depends on",
    "GM102-T07": "the branch stands inside vmap, grad or another function transform",
    "GM102-T08": "a side branches on tensor data in a way that cannot be evaluated ahead of time",
    "GM102-T09": "a side assigns to an attribute through a setter",
    "GM102-T10": "a side writes to a tensor under a mask in a way that could fail, or that a gradient would show",
    "GM102-T11": "the sides have effects beside what they bind, or what they give is written in place later",
}
_TRAP = {
    "GM103-T01": "GRAPHMEND_GUARDS=keep leaves guards alone",
}
_VALUE = {
    "GM104-T01": "the number depends on data that is not known while tracing",
    "GM104-T02": "the number depends on an input; name it in GRAPHMEND_VALUES to compile once for each of its values",
    "GM104-T03": "the number depends on a tensor that the graph writes to in place",
    "GM104-T04": "the compiled code is saved, and a guard on a value cannot be",
    "GM104-T05": "the frame has been compiled for four combinations of values already",
    "GM104-T06": "what the compiled code took for granted of a size that the data decides did not hold in another call",
}
_SWEEP = {
    "GM105-T01": "a step of the loop does more than compute from its rows, or could fail on none",
    "GM105-T02": "gradients would differ: a step without rows gives zeros where there would be none",
    "GM105-T03": "the loop has too many steps to make all of them",
}
BY_RULE = {"defer": _DEFER, "where": _WHERE, "trap": _TRAP, "value": _VALUE, "sweep": _SWEEP}
REFUSALS = refusals.REFUSALS | {code: text for texts in BY_RULE.values() for code, text in texts.items()}
# The rule that most often gives a code, by what the code begins with: several rules have effects and branches.
RULE_OF_CODE = {code.partition("-")[0]: rule for rule, texts in BY_RULE.items() for code in texts}
