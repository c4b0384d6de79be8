"""Why an effect is left as it was written while Dynamo traces: codes and sentences, by the name of the rule."""

from __future__ import annotations

_DEFER = {
    "GM101-T01": "the call is not print, warnings.warn or a method that a logger has from logging.Logger",
    "GM101-T02": "an argument is a tensor whose text shows its autograd state, or a subclass of Tensor",
    "GM101-T03": "an argument is a tensor inside vmap, grad or another function transform",
    "GM101-T04": "an argument is an object whose text may change before the effect is delivered, or is too big to copy",
    "GM101-T05": "the call stands in a context manager or behind an assignment that may redirect it or change its text",
    "GM101-T06": "the call stands in the body of a higher-order operator that forbids side effects",
    "GM101-T07": "a warnings filter turns warnings into errors, which must be raised where they arise",
    "GM101-T08": "activation checkpointing would draw again in backward; only fullgraph=True leaves that out",
    "GM101-T09": "this torch, or this way to compile, generates code that the epilogue cannot reach",
    "GM101-T10": "a handler around a traced call could catch what the effect raises, or a `finally` or hook act on it",
    "GM101-T11": "the frame needs its breaks: compiling it without them fails, or an `assert` in it stands in a `try`",
    "GM101-T12": "the effect stands in a `finally` and would also follow a guard, or a call before it, that raises",
    "GM101-T13": "the number that is drawn is looked at, or an operation of another library may draw as well",
    "GM101-T14": "activation checkpointing has the effect again in backward; the graph has it once, in forward",
    "GM101-T15": "the call shows a caller that is not traced, or that is not known to be the one eager would show",
    "GM101-T16": "the call reads the exception or the stack of its moment, or has a `stacklevel` that is no number",
    "GM101-T17": "the function is behind a cache of functools, so that it has the effect once, and the trace each time",
    "GM101-T18": "the logger shows what is not plain, or what the traced code changes, or not its direct caller",
}
REFUSALS = {"defer": _DEFER}
