"""The tiny programs of `probes`: what rewritten code does, written out by hand."""

from __future__ import annotations

from typing import Any

import torch

from ..attempt.attempt import Feature
from ..epilogue import deferral, queue, rerun
from ..numbers import capture
from . import frame_guards
from .question import question
from .tracer import Trace
from .variables import Variable, tensor_node


class Program:
    """What a program leaves behind.

    is_written, delivered: in this order; is_traced: what `tracing` said in the trace; is_traced_anew: after an attempt.
    """

    def __init__(self) -> None:
        self.is_written = False
        self.is_traced = False
        self.is_traced_anew = False
        self.delivered: list[tuple[str, bool]] = []


def deliver(program: Program, values: list[Any]) -> None:
    """Note the text, and whether the attribute had been written by then."""
    program.delivered.append((values[0], program.is_written))


_FIRST = Feature("no attempt has been given up")


@question(otherwise=False)
def start_anew(trace: Trace) -> bool:
    """Give up on the first attempt."""
    is_first = trace.compilation.allows(_FIRST)
    if is_first:
        trace.compilation.without(_FIRST.at(), reason="a probe")
    return not is_first


def effects(program: Program, text: str, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Is traced twice, defers a text, writes an attribute, and fails on an index that is out of range."""
    if deferral.tracing():
        program.is_traced = True
        program.is_traced_anew = start_anew()
        queue.graphmend_pending.append((queue.ITEM, deliver, program, text))
        deferral.replay_last()
        rerun.expect_failure()
    else:
        deliver(program, [text])
    program.is_written = True
    return torch.ops.aten.index_select(x, 0, index) + 1  # libraries put functions of their own in the place of torch's


@question(otherwise=False)
def guard_first(trace: Trace, x: Variable) -> bool:
    """Let the code run only where the first element is what it is now."""
    example = tensor_node(x).meta["grapharg"]
    first = example.example[0].item()
    sources = [example.source]
    frame_guards.install(trace.compilation, "probe", sources, lambda tensor: tensor[0].item() == first, "a probe")
    return True


def guarded(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """Is compiled for each first element of its argument."""
    return x + 1, guard_first(x)


def captured(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Adds as many rows as are positive; Dynamo takes for granted that it is not one row, which would be spread."""
    mask = x > 0  # in a graph of its own, where nothing is captured
    if torch.compiler.is_dynamo_compiling() and capture.begin_shape():
        rows = mask.nonzero()
        capture.end()
        return rows + other
    return mask.nonzero() + other
