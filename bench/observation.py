"""Everything that can be observed of one row in one arm: ``python -m bench.observation ROW OUT BACKEND [BACKEND ...]``.

OUT is a file of `torch.save`: the results of eager and of every backend, with breaks allowed; whether
``fullgraph=True`` succeeds; the graphs after each call and the seconds of tracing.
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the libraries are imported

import copy
from typing import Any

import torch
import transformers  # noqa: F401  it sets up its own logging when it is imported, before Recorder does

from bench.models import rows
from bench.worker import use_knobs

sys.path.insert(0, os.path.dirname(rows.__file__))
from judge import Counting, Recorder, observed

CALLS = 3


def compiled(model: torch.nn.Module, calls: list[Any], backend: str, recorder: Recorder) -> dict[str, Any]:
    from torch._dynamo.utils import calculate_time_spent, compilation_time_metrics

    torch._dynamo.reset()
    compilation_time_metrics.clear()
    counting = Counting(backend)
    function = torch.compile(copy.deepcopy(model), backend=counting, dynamic=False)
    seen = observed(function, calls[:1], recorder, counting)
    spent = calculate_time_spent()
    tracing = spent.get("entire_frame_compile", 0.0) - spent.get("backend_compile", 0.0)
    return {"calls": seen + observed(function, calls[1:], recorder, counting), "tracing": tracing}


def main(name: str, out: str, *backends: str) -> None:
    if os.environ.get("BENCH_KNOBS"):
        use_knobs()
    recorder = Recorder()
    model, calls = rows.build(name)
    calls = calls[:CALLS]
    with torch.no_grad():
        if not rows.ROWS[name].fresh:
            model(**calls[0])
        recorder.take()
        seen: dict[str, Any] = {"eager": {"calls": observed(copy.deepcopy(model), calls, recorder)}}
        for backend in backends:
            seen[f"compiled {backend}"] = compiled(model, calls, backend, recorder)
        torch._dynamo.reset()
        whole = torch.compile(copy.deepcopy(model), backend="eager", dynamic=False, fullgraph=True)
        seen["fullgraph"] = observed(whole, calls[:1], recorder)[0]["error"] is None
    torch.save(seen, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
