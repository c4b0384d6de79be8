"""A plain user's script: builds one row, runs it in eager and compiled, and saves what there was to observe.

usage: judge.py ROW OUT BACKEND [BACKEND ...]
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ and "graphmend_hook" not in sys.modules:
    import graphmend_hook  # noqa: F401  the one line of the second way to use it

import logging
import warnings
from typing import Any

import rows
import torch
import transformers

Records = list[tuple[object, ...]]


class Recorder(logging.Handler):
    """Every log record and warning, as a handler that looks at all of it would see it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Records = []
        logger = logging.getLogger("transformers")
        logger.handlers[:] = [self]
        logger.propagate = False
        warnings.showwarning = self.showwarning  # type: ignore[assignment]
        warnings.simplefilter("always")

    def emit(self, record: logging.LogRecord) -> None:
        place = (record.pathname, record.lineno, record.funcName)
        self.seen.append((record.name, record.levelname, *place, record.getMessage()))

    def showwarning(self, message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        if "transformers" in filename:
            self.seen.append(("warning", category.__name__, filename, lineno, str(message)))

    def take(self) -> Records:
        """What was recorded since the last call; "once" methods may speak again."""
        for name in ("warning_once", "info_once"):
            getattr(logging.Logger, name).cache_clear()
        seen, self.seen = self.seen, []
        return seen


def tensors(output: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(output.to_tuple())
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Counting:
    """A backend that counts the graphs it is handed."""

    def __init__(self, name: str) -> None:
        self.graphs = 0
        self._compile = torch._dynamo.lookup_backend(name)

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.graphs += 1
        return self._compile(graph, inputs)


def compiled(
    model: torch.nn.Module, inputs: dict[str, torch.Tensor], backend: str, recorder: Recorder
) -> dict[str, Any]:
    """Three calls with breaks allowed, then one with fullgraph=True."""
    torch._dynamo.reset()
    counting = Counting(backend)
    function = torch.compile(model, backend=counting, dynamic=False)
    calls = []
    for _ in range(3):
        output = tensors(function(**inputs))
        calls.append({"output": output, "records": recorder.take(), "graphs": counting.graphs})
    result: dict[str, Any] = {"calls": calls}
    torch._dynamo.reset()
    try:
        result["fullgraph"] = tensors(torch.compile(model, backend=backend, dynamic=False, fullgraph=True)(**inputs))
    except torch._dynamo.exc.Unsupported as error:
        result["fullgraph"] = None
        result["error"] = str(error)
    result["fullgraph_records"] = recorder.take()
    return result


def main(row: str, out: str, *backends: str) -> None:
    recorder = Recorder()
    model, inputs = rows.build(row)
    recorder.take()
    seen: dict[str, Any] = {"transformers": transformers.__version__}
    with torch.no_grad():
        seen["plain"] = {"output": tensors(model(**inputs)), "records": recorder.take()}
        for backend in backends:
            seen[backend] = compiled(model, inputs, backend, recorder)
    torch.save(seen, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
