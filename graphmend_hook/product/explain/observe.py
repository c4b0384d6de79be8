"""Writes down what Dynamo does in this process: each graph that a backend is given, each break and its reason.

Dynamo's own counters do not tell: a branch on a tensor is not among them, and a frame that it gives up has no graph.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable
from types import FrameType
from typing import Any

from ...engine.door.inputs import inputs_behind
from ...engine.door.observer import compilation_id, kind_of, observed, stack_of
from ..report.ledger import as_json, ledger
from ..report.sources import Frame, is_foreign

_RESUMED = "torch_dynamo_resume_in_"
_FRAME = re.compile(r'^\s*File "(.*)", line (\d+), in (.*)', re.MULTILINE)
Graph = list[dict[str, Any]]  # its operations by their traceback, and how many have it


class Observer:
    """The graphs and breaks of this process, in the order in which they are met, in frames of the user's.

    graphs: by region, which is what one call of `torch.compile` made, called from one place, and by its calls.
    count: how many graphs there are.
    backends: the names of those that were given one.
    breaks: each once for a compilation.
    """

    def __init__(self) -> None:
        self.graphs: dict[tuple[str, str, int], list[list[Graph]]] = {}
        self.count = 0
        self.backends: dict[str, None] = {}
        self.breaks: list[dict[str, Any]] = []
        self._met: set[tuple[object, ...]] = set()

    def as_json(self) -> dict[str, Any]:
        """What was seen, and the report of this process."""
        regions = [
            {"name": name, "file": file, "line": line, "graphs": graphs}
            for (name, file, line), graphs in self.graphs.items()
        ]
        return {"regions": regions, "breaks": self.breaks, "backends": [*self.backends], "report": as_json(ledger)}

    def attached(self) -> contextlib.AbstractContextManager[None]:
        """Observes as long as it is entered; imports torch."""
        return observed(self._on_graph, self._on_break)

    def _on_graph(self, module: Any, backend: str) -> None:
        self.backends[backend] = None
        outside, graphs = self._around()
        calls: Counter[tuple[Frame, ...]] = Counter()
        for node in module.graph.nodes:
            if node.op.startswith("call"):
                stack = (*outside, *_frames(node.meta.get("stack_trace")))
                calls[stack] += 1
        graphs.append([{"stack": stack, "operations": count} for stack, count in calls.items()])
        self.count += 1

    def _on_break(self, reason: str, error: BaseException) -> None:
        outside, _ = self._around()
        whole = [(frame.filename, frame.lineno or 0, name_of(frame.name)) for frame in stack_of(error)]
        # A frame of the standard library that is compiled by itself is told of the user's line that called it.
        stack = [frame for frame in whole if not is_foreign(frame[0])] or outside or whole
        key = (*compilation_id(), kind_of(error), *outside, *stack)
        if key not in self._met:
            self._met.add(key)
            inputs = inputs_behind(error)
            self.breaks.append({"kind": kind_of(error), "reason": reason, "stack": stack, "inputs": inputs})

    def _around(self) -> tuple[list[Frame], list[Graph]]:
        """The program's frames from the call of a region to the frame that is compiled, and the graphs of that call.

        There is none of a frame that Dynamo gives up.
        """
        stack = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))][::-1]
        entry = next((index for index, each in enumerate(stack) if _is_entry(each)), None)
        if entry is None:
            return [], self.graphs.setdefault(("(compiled without torch.compile)", "", 0), [[]])[0]
        callers = [each for each in stack[:entry] if not is_foreign(each.f_code.co_filename)] or stack[:entry]
        caller = (callers[-1].f_code.co_filename, callers[-1].f_lineno or 0) if callers else ("", 0)
        inside: list[Frame] = []
        for each in stack[entry:]:
            code = each.f_code
            if is_foreign(code.co_filename):
                continue
            if code.co_name.startswith(_RESUMED) and inside:
                inside.pop()  # the part before the break, which called this one
            inside.append((code.co_filename, each.f_lineno or 0, name_of(code.co_name)))
        region = self.graphs.setdefault((_title(stack[entry].f_locals.get("fn")), *caller), [])
        # The mark of a call that is met for the first time: nothing else traces it, but another observer may be first.
        if stack[entry].f_trace_lines or not region:
            stack[entry].f_trace_lines = False
            region.append([])
        return inside, region[-1]


def _is_entry(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "compile_wrapper" and code.co_filename.endswith(os.path.join("_dynamo", "eval_frame.py"))


def _title(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type):
        return type(owner).__name__
    return str(getattr(function, "__qualname__", type(function).__name__))


def name_of(function: str) -> str:
    """The name of a function, without what Dynamo makes of it where it goes on after a break."""
    while function.startswith(_RESUMED):
        function = function.removeprefix(_RESUMED).rpartition("_at_")[0]
    return function


def _frames(trace: str | None) -> Iterable[Frame]:
    """The frames of a traceback in text."""
    for file, line, function in _FRAME.findall(trace or ""):
        if not is_foreign(file):
            yield file, int(line), name_of(function)
