"""Compiles a callable, calls it once, and tells how many graphs Dynamo made of it and where it broke off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_EXPLANATION = re.compile(r"\s*Explanation: (.*)")


@dataclass(frozen=True)
class Break:
    """A place where Dynamo ended a graph, or gave up on a frame, and why."""

    path: str
    line: int
    function: str
    reason: str


@dataclass(frozen=True)
class Capture:
    """What one call of a compiled callable gave.

    graphs: how many the backend was handed.  breaks: one for each place, in the order of tracing; a frame that Dynamo
    leaves to eager as a whole is among them, with the place that made it give up.
    """

    result: Any
    graphs: int
    breaks: tuple[Break, ...]


def capture(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any) -> Capture:
    """Call `function`, compiled for `backend` from scratch, with the arguments given.

    Everything that was compiled before in this process is forgotten, or Dynamo would count the calls of other tests
    towards its recompile limit.  What the call raises passes through.
    """
    import torch
    from torch._dynamo.utils import clear_compilation_metrics

    graphs = 0
    compile_graph = torch._dynamo.lookup_backend(backend)

    def counting(graph: Any, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return compile_graph(graph, inputs)

    torch._dynamo.reset()
    clear_compilation_metrics()
    try:
        result = torch.compile(function, backend=counting)(*args, **kwargs)
        by_place: dict[tuple[str, int], Break] = {}
        for found in _breaks():
            by_place.setdefault((found.path, found.line), found)  # a call that breaks is met again in the callee
        return Capture(result, graphs, tuple(by_place.values()))
    finally:
        torch._dynamo.reset()


def _breaks() -> Iterator[Break]:
    from torch._dynamo.utils import get_compilation_metrics, graph_break_reasons

    from ..runtime.tracer import OWN_FILES

    for reason in graph_break_reasons:
        frames = [frame for frame in reason.user_stack if frame.filename not in OWN_FILES] or reason.user_stack
        if frames:
            yield Break(frames[-1].filename, frames[-1].lineno or 0, name_of(frames[-1].name), _short(reason.reason))
    for metrics in get_compilation_metrics():
        if metrics.fail_type is not None:
            path = metrics.fail_user_frame_filename or metrics.co_filename or "?"
            line = metrics.fail_user_frame_lineno or metrics.co_firstlineno or 0
            yield Break(path, line, name_of(metrics.co_name or "?"), _short(metrics.fail_reason or metrics.fail_type))


def name_of(function: str) -> str:
    """The name of a function, without what Dynamo adds to that of the part which follows a graph break."""
    return re.sub(r"^torch_dynamo_resume_in_(.*)_at_\d+$", r"\1", function)


def _short(reason: str) -> str:
    """The kind of the break and Dynamo's explanation, without its hints."""
    kind, *others = reason.strip().splitlines() or ["?"]
    explained = next(filter(None, map(_EXPLANATION.match, others)), None)
    return f"{kind}: {explained[1]}" if explained else kind
