"""Where Dynamo ends a graph, or gives a frame up, at a statement that was mended, for a reason that no rule knows.

The report would count it as mended: a test on an array of numpy, say, is no tensor to a rule, and data decides it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..door.own_code import OWN_FILES
from ..door.tracer import SourceLine, Trace, place_of
from ..graph_end.order import Verdict
from . import refusals
from .compilation import Compilation, is_graph_break
from .refusals import ENDED_BY_DYNAMO, Place, record


@dataclass
class _Mended:
    """The lines at which an attempt has traced what rewritten code calls."""

    lines: set[SourceLine | None] = field(default_factory=set)


@dataclass
class _Seen:
    """What the last attempt of a compilation has recorded; it is not so where another one is made."""

    places: list[Place] = field(default_factory=list)


def note(trace: Trace) -> None:
    """Remember that the statement at hand is a mended one, and see whether the attempt ends there."""
    mended = trace.compilation.of(_Mended)
    if not mended.lines:
        places = trace.compilation.attempts.of(_Seen).places
        while places:
            refusals.seen.pop((ENDED_BY_DYNAMO, *places.pop()), None)
        trace.compilation.judge(Verdict.BREAK, _judge_graph)
        trace.compilation.at_end(_judge_end)
    mended.lines.add(trace.line)


def _judge_graph(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    """Does the graph end in a break, which is where the frames that are traced have come to?"""
    reason = compilation.output.compile_subgraph_reason
    frames = [frame for frame in reason.user_stack if frame.filename not in OWN_FILES]
    if reason.graph_break and frames:
        _see(compilation, (frames[-1].filename, frames[-1].lineno or 0, frames[-1].name), reason.reason)


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Does the attempt end in a break, or is the frame given up?  An order to break has the error as its context."""
    from torch._dynamo.exc import SkipFrame, Unsupported

    cause = error.__context__ if is_graph_break(error) and error is not None else error
    if isinstance(cause, (SkipFrame, Unsupported)):
        place = place_of(cause)
        if place is not None:
            _see(compilation, place, str(cause))


def _see(compilation: Compilation, place: Place, reason: str) -> None:
    if place[:2] not in compilation.of(_Mended).lines:
        return
    refusals.decided.discard(place[:2])
    if not refusals.is_left(place):
        compilation.attempts.of(_Seen).places.append(place)
        record(ENDED_BY_DYNAMO, reason.strip().partition("\n")[0].partition(":")[0], place)
