"""A plain user's script: builds a row, runs it in eager and compiled, and saves what there was to observe.

Each line of its input asks a question: a JSON list of ROW, OUT, BACKEND ..., or of ROW, OUT, "forms".  Each has a process
of its own, forked from this one, which has imported what all of them need.  It answers with the status of that process
and what it wrote.
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ and "graphmend_hook" not in sys.modules:
    import graphmend_hook  # noqa: F401  the one line of the second way to use it

import copy
import gc
import json
import logging
import signal
import tempfile
import warnings
from typing import Any

import rows
import torch
import transformers  # noqa: F401  it sets up its own logging when it is imported, before Recorder does

TIMEOUT = 600
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
    leaves = torch.utils._pytree.tree_leaves(output.to_tuple() if hasattr(output, "to_tuple") else output)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Counting:
    """A backend that counts the graphs it is handed."""

    def __init__(self, name: str) -> None:
        self.graphs = 0
        self._compile = torch._dynamo.lookup_backend(name)

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        self.graphs += 1
        return self._compile(graph, inputs)


def observed(function: Any, calls: list[rows.Inputs], recorder: Recorder, counting: Any = None) -> list[dict[str, Any]]:
    """What each of `calls` gave or raised, what it logged, and how many graphs there were by then."""
    seen = []
    for inputs in calls:
        try:
            output, error = tensors(function(**inputs)), None
        except Exception as exception:
            output, error = None, (type(exception).__qualname__, str(exception))
        graphs = counting.graphs if counting else 0
        seen.append({"output": output, "error": error, "records": recorder.take(), "graphs": graphs})
    return seen


def compiled(model: torch.nn.Module, calls: list[rows.Inputs], backend: str, recorder: Recorder) -> dict[str, Any]:
    """All calls with breaks allowed (on the eager backend), then with fullgraph=True, each on a model of its own."""
    result = {}
    for name, fullgraph in (("calls", False), ("fullgraph", True))[backend != "eager" :]:
        torch._dynamo.reset()
        counting = Counting(backend)
        options = {"backend": counting, "dynamic": False, "fullgraph": fullgraph}
        result[name] = observed(torch.compile(copy.deepcopy(model), **options), calls, recorder, counting)
    return {"calls": result["fullgraph"], **result}


def judge(name: str, out: str, *backends: str) -> None:
    recorder = Recorder()
    model, calls = rows.build(name)
    with torch.no_grad():
        if not rows.ROWS[name].fresh:
            model(**calls[0])
        recorder.take()
        seen: dict[str, Any] = {"plain": observed(copy.deepcopy(model), calls, recorder)}
        for backend in backends:
            seen[backend] = compiled(model, calls, backend, recorder)
    torch.save(seen, out)


def answer(row: str, out: str, *asked: str) -> None:
    if asked == ("forms",):
        import forms

        torch.save(forms.outcomes(row), out)
    else:
        judge(row, out, *asked)


def main() -> None:
    import torch._inductor.compile_fx
    import transformers.modeling_utils  # noqa: F401

    gc.disable()  # no child lives long
    # What Inductor asks the compiler, and all of torch's source, once for a process.
    torch._inductor.cpu_vec_isa.valid_vec_isa_list()
    torch._inductor.codecache.torch_key()
    for request in sys.stdin:
        with tempfile.TemporaryFile() as words:
            child = os.fork()
            if not child:
                for stream in (1, 2):
                    os.dup2(words.fileno(), stream)
                signal.alarm(TIMEOUT)
                return answer(*json.loads(request))
            status = os.waitpid(child, 0)[1]
            words.seek(0)
            print(json.dumps([status, words.read().decode(errors="replace")]), flush=True)


if __name__ == "__main__":
    main()
