"""One arm of the ecosystem: ``python -m bench.ecosystem.arm LIBRARY OUT.jsonl``; each case has a process of its own.

The hook is there if ``GRAPHMEND_MODULES`` is set.  A line of OUT is what `observe` gives of a case.
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the libraries are imported

import copy
import importlib
import json
import logging
import random
import re
import signal
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.convert_frame
from torch._guards import CompileContext, CompileId
from torch.utils import _pytree

CALLS = 12  # of one module, whose counters and buffers go on; each with other data of the same shapes
TIMEOUT = 300
_SHOWN = 200  # characters of an error
_BREAK = "Graph break in user code at "
_REGISTRY = re.compile(r"/(gb\d+)\.html")


def observe(build: Callable[[], Callable[..., Any]], inputs: Callable[[], tuple[Any, ...]]) -> dict[str, Any]:
    """Graphs and breaks of a case, and whether what it gives, raises, says and keeps is that of eager."""
    records = _Records()
    right = _calls(_built(build), inputs, records)
    counted = Counted()
    breaks = _Breaks()
    compiled = _built(build)
    found = _calls(torch.compile(compiled, backend=counted), inputs, records, compiled, counted)
    torch._dynamo.reset()
    breaks.stop()
    whole = torch.compile(_built(build), backend="eager", fullgraph=True)
    refused = _calls(whole, inputs, records, count=1)[0]["error"]
    return {
        "graphs": [call["graphs"] for call in found],
        "operations": [call["operations"] for call in found],
        "runs": [call["runs"] for call in found],
        "ran": [call["ran"] for call in found],
        "breaks": breaks.made(counted.whole),
        "whole": refused == right[0]["error"],
        "refused": refused and refused[:_SHOWN],
        "raises": right[0]["error"],
        "differs": [what for what in ("output", "error", "records", "random", "state") if _differ(right, found, what)],
    }


def _built(build: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    _seed(0)
    return build()


def _seed(seed: int) -> None:
    import numpy

    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def _calls(
    function: Callable[..., Any],
    inputs: Callable[[], tuple[Any, ...]],
    records: _Records,
    owner: object = None,
    counted: Counted | None = None,
    count: int = CALLS,
) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for seed in range(count):
        _seed(seed + 1)
        given = inputs()
        output, error = None, None
        if counted:
            counted.runs = counted.ran = 0
        try:
            output = _leaves(function(*given))
        except Exception as exception:
            error = f"{type(exception).__qualname__}: {exception}"
        seen.append(
            {
                "output": copy.deepcopy(output),
                "error": error,
                "records": records.take(),
                "random": [torch.get_rng_state(), repr(random.getstate())],
                "state": _state(owner or function),
                "graphs": counted.graphs if counted else 0,
                "operations": counted.operations if counted else 0,
                "runs": counted.runs if counted else 0,
                "ran": counted.ran if counted else 0,
            }
        )
    return seen


def _leaves(output: Any) -> list[Any]:
    """The numbers and tensors of a result; of an object, those of its attributes."""
    found: list[Any] = []
    for leaf in _pytree.tree_leaves(output):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf.detach())
        elif hasattr(leaf, "__dict__") and not callable(leaf):
            found += [part.detach() for part in _pytree.tree_leaves(vars(leaf)) if isinstance(part, torch.Tensor)]
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            found.append(leaf)
    return found


def _state(function: object) -> list[torch.Tensor]:
    return [part.clone() for part in function.state_dict().values()] if isinstance(function, torch.nn.Module) else []


def _differ(right: list[dict[str, Any]], found: list[dict[str, Any]], what: str) -> bool:
    return any(not _same(a[what], b[what]) for a, b in zip(right, found, strict=True))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    return bool(a == b or (a != a and b != b))


class _Records(logging.Handler):
    """What is logged and warned of."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[str] = []
        logging.getLogger().addHandler(self)
        warnings.showwarning = self._warned  # type: ignore[assignment]
        warnings.simplefilter("always")

    def _warned(self, message: Any, category: type[Warning], *_: Any) -> None:
        if CompileContext.current_compile_id() is None:  # else a kernel for fake tensors says it, and eager has none
            self._seen.append(f"{category.__name__}: {message}")

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(("torch.", "graphmend_hook")):  # which say of themselves what they did
            self._seen.append(f"{record.name} {record.levelname} {record.getMessage()}")

    def take(self) -> list[str]:
        seen, self._seen = self._seen, []
        return [line for line in seen if "torch._dynamo" not in line]


class _Breaks(logging.Handler):
    """Where Dynamo breaks, and why: a place, what it says, and the number in PyTorch's registry of breaks."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._seen: list[tuple[CompileId | None, tuple[str, str, str]]] = []
        torch._logging.set_logs(graph_breaks=True)
        logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not text.startswith(_BREAK):
            return
        place, _, rest = text[len(_BREAK) :].partition("\n")
        number = _REGISTRY.search(rest)
        first, explained, _ = rest.partition("  Explanation:")
        lines = first.strip().splitlines() or [""]
        reason = lines[-1 if explained else 0].removeprefix("Graph Break Reason: ").strip()
        found = (_from_package(place), reason, number[1].upper() if number else "")
        self._seen.append((CompileContext.current_compile_id(), found))

    def made(self, whole: set[CompileId | None]) -> list[tuple[str, str, str]]:
        """The breaks, each once, without those of attempts in the place of which the frame became one graph.

        whole: the compilations that did.
        """
        return list(dict.fromkeys(found for number, found in self._seen if number not in whole))

    @staticmethod
    def stop() -> None:
        torch._logging.set_logs()


def _from_package(place: str) -> str:
    """A place without the folder that packages are in."""
    folders = sorted((folder for folder in sys.path if folder and place.startswith(folder)), key=len)
    return place[len(folders[-1]) :].lstrip(os.sep) if folders else place


class Counted:
    """A backend that counts graphs.  whole: the compilations of which the graph ends with the frame.

    operations: those on tensors, of all graphs; runs, ran: how many graphs run in a call, and how many operations they
    have.
    """

    def __init__(self) -> None:
        self.graphs = self.operations = 0
        self.runs = self.ran = 0
        self.whole: set[CompileId | None] = set()

    def __call__(self, graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        operations = sum(node.op.startswith("call") and not _is_of_numbers(node) for node in graph.graph.nodes)
        self.graphs += 1
        self.operations += operations
        if not graph.compile_subgraph_reason.graph_break:
            self.whole.add(CompileContext.current_compile_id())

        def run(*inputs: Any) -> Any:
            self.runs += 1
            self.ran += operations
            return graph.forward(*inputs)

        return run


def _is_of_numbers(node: torch.fx.Node) -> bool:
    """Does it make a number of numbers?  Those are Python's: a counter that is no symbol leaves nothing in a graph."""
    examples = [each.meta.get("example_value") for each in (node, *node.all_input_nodes)]
    return all(isinstance(example, (torch.SymInt, torch.SymFloat, torch.SymBool)) for example in examples)


def main(library: str, out: str, *only: str) -> None:
    found = importlib.import_module(f"bench.ecosystem.cases.{library}").CASES
    for name in [name for name in found if not only or any(part in name for part in only)]:
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "seen.json")
            child = os.fork()
            if not child:
                status = 1
                try:
                    signal.alarm(TIMEOUT)
                    answer.write_text(json.dumps(observe(*found[name])), encoding="utf-8")
                    status = 0
                except BaseException as error:
                    answer.write_text(json.dumps({"died": f"{type(error).__qualname__}: {error}"}), encoding="utf-8")
                finally:
                    os._exit(status)
            status = os.waitpid(child, 0)[1]
            seen = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {"died": f"status {status}"}
        line = {"library": library, "case": name, **seen}
        with open(out, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line)[:150], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
