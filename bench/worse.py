"""Is anything worse with the hook than without?  ``python -m bench.worse SOURCE OUT.jsonl [--only A,B]``

SOURCE is ``rows``, the rows of the tests; the folder of the survey's `census.py`, which builds a small model of each
type that transformers has; or a library of `bench.ecosystem`, such as ``kornia``.  Each model is compiled on the eager
backend and called ten times with changing data, without the hook and with it, in turn.  A line of OUT has of each arm:

``graphs``: after the first call; ``operations``: those in them; ``recompiled``: graphs that the other calls added;
``seconds``: of processor time in Dynamo and the calls; ``errors``: of calls.

``python -m bench.worse --table OUT.jsonl ...`` prints the ratios, and every model that is worse: it captures fewer
operations in the first call, is compiled more often after it, fails where it ran, or takes more than 1.3 times as long.
Exit status 1: there is one that `KNOWN` has no reason for.
"""

from __future__ import annotations

import os

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the libraries are imported

import argparse
import contextlib
import copy
import importlib
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from .arms import Worker

CALLS = 10
TIMEOUT = 300
SLOWER = 1.3
Case = tuple[Callable[..., Any], list[tuple[tuple[Any, ...], dict[str, Any]]]]
Line = dict[str, Any]

# What is worse, by model and by what is worse of it, and why.
_KEEPS = "the model keeps what the first call makes, and the one graph is guarded on it"
KNOWN: dict[tuple[str, str], str] = {
    ("phi3", "recompiled"): _KEEPS,
    ("phi3_long", "recompiled"): _KEEPS,
    (
        "mra",
        "operations",
    ): "`requires_grad_()` under `no_grad` is told while tracing, and no call of it is in the graph",
    (
        "qwen2_audio",
        "seconds",
    ): "one graph for four; a side is tried that may not be, late in the frame, which is then traced once more",
    ("nemotron3_5_asr", "seconds"): "two graphs for four, and the same; a caller of an LSTM is traced up to it",
}


# --- one arm: it builds what it is told to, and answers what was seen ------------------------------------------------


def serve(source: Source) -> None:
    """Answer what `arms.Worker` asks for, a model each; each has a process of its own, forked from this one."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for module in ("torch._dynamo.convert_frame", *source.modules):
        importlib.import_module(module)
    for request in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "seen.json")
            child = os.fork()
            if not child:
                _answer(source.build, json.loads(request)["name"], answer)
            os.waitpid(child, 0)
            seen = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {"died": "killed"}
        print(json.dumps({"answer": seen}), file=answers, flush=True)


def _answer(build: Callable[[str], Case], name: str, answer: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    signal.alarm(TIMEOUT)
    try:
        answer.write_text(json.dumps(seen_of(*build(name))), encoding="utf-8")
    except BaseException as error:
        answer.write_text(json.dumps({"died": f"{type(error).__qualname__}: {error}"[:300]}), encoding="utf-8")
    finally:
        os._exit(0)


def seen_of(function: Callable[..., Any], calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> Line:
    """What there is to see of the calls of a compiled function."""
    import torch

    operations: list[int] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        operations.append(sum(node.op.startswith("call") for node in graph.graph.nodes))
        return graph.forward

    compiled, first, errors = torch.compile(function, backend=backend, dynamic=False), 0, []
    begun = time.process_time()
    for number, (given, named) in enumerate(calls):
        torch.manual_seed(number)
        try:
            compiled(*copy.deepcopy(given), **copy.deepcopy(named))
        except Exception as error:
            errors.append(type(error).__qualname__)
        first = first if number else len(operations)
    return {
        "graphs": first,
        "operations": sum(operations[:first]),
        "recompiled": len(operations) - first,
        "seconds": round(time.process_time() - begun, 3),
        "errors": errors,
    }


# --- where models come from ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Models by their names.  modules: are imported before any is built; mended: what the hook is told to mend."""

    names: Callable[[], list[str]]
    build: Callable[[str], Case]
    modules: tuple[str, ...]
    mended: tuple[str, ...] = ("transformers",)


def source_of(text: str) -> Source:
    if text == "rows":
        return Source(lambda: _rows().present(metadata.version("transformers")), _row, ("bench.models", "transformers"))
    if Path(text, "census.py").exists():
        sys.path.insert(0, str(Path(text).resolve()))
        return Source(lambda: list(importlib.import_module("census").order()[0]), _type, ("census",))
    from .ecosystem import MODULES

    cases = f"bench.ecosystem.cases.{text}"
    names = lambda: list(importlib.import_module(cases).CASES)  # noqa: E731
    return Source(names, lambda name: _case(cases, name), (cases,), tuple(MODULES[text]))


def _rows() -> Any:
    return importlib.import_module("bench.models").rows


def _row(name: str) -> Case:
    import torch

    torch.set_grad_enabled(False)
    model, calls = _rows().build(name)
    return model, [((), _changed(calls[number % len(calls)], number)) for number in range(CALLS)]


def _type(name: str) -> Case:
    """The model and inputs that the survey compiles, caught where it does so."""
    import torch

    census, caught = importlib.import_module("census"), []

    class Caught(Exception):  # noqa: N818  control flow
        pass

    def compiled(model: Any, inputs: Any) -> None:
        caught.extend((model.eval(), inputs))
        raise Caught

    census.comp = compiled
    given = argparse.Namespace(eager_only=False, base=False, train=False, build_budget=12.0, tb=False)
    with contextlib.suppress(Caught):
        census.child(name, given, lambda _line: None)
    torch.set_grad_enabled(False)
    model, inputs = caught
    return model, [((), _changed(dict(inputs), number)) for number in range(CALLS)]


def _case(cases: str, name: str) -> Case:
    import torch

    build, inputs = importlib.import_module(cases).CASES[name]
    torch.manual_seed(0)
    function, calls = build(), []
    for number in range(CALLS):
        torch.manual_seed(number + 1)
        calls.append((tuple(inputs()), {}))
    return function, calls


def _changed(inputs: dict[str, Any], number: int) -> dict[str, Any]:
    """The inputs with other numbers: floats are scaled, so that zeros, signs and what is no number stay."""
    import torch

    def of(value: Any) -> Any:
        changes = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value * (1 + number / 8) if changes else value

    return {name: of(value) for name, value in inputs.items()}


# --- both arms, in turn ----------------------------------------------------------------------------------------------


def measure(text: str, out: Path, only: Sequence[str]) -> None:
    """Append a line to `out` for each model of a source that it has not yet."""
    source, known = source_of(text), out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    done = {json.loads(line)["name"] for line in known}
    serving, one = ("bench.worse", text, "--serve"), {"OMP_NUM_THREADS": "1"}
    hook = {"GRAPHMEND_MODULES": ",".join(source.mended)}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        arms = {
            "off": Worker("off", Path(folder), serving, one),
            "on": Worker("on", Path(folder), serving, {**one, **hook}),
        }
        for worker in arms.values():
            stack.callback(worker.close)
        for name in only or source.names():
            if name in done:
                continue
            line = {"name": name, "source": Path(text).name}
            line |= {arm: worker("observe", name=name) for arm, worker in arms.items()}
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line)[:240], flush=True)


def what_is_worse(line: Line) -> dict[str, str]:
    """By name, what of a model is worse with the hook, in numbers."""
    off, on = line["off"], line["on"]
    if "died" in off:
        return {}
    if "died" in on:
        return {"died": on["died"]}
    found = {}
    if on["operations"] < off["operations"] and len(off["errors"]) < CALLS:  # else there is nothing that runs
        found["operations"] = f"{off['operations']} to {on['operations']}"
    if on["recompiled"] > off["recompiled"]:
        found["recompiled"] = f"{off['recompiled']} to {on['recompiled']}"
    if len(on["errors"]) > len(off["errors"]):
        found["errors"] = f"{len(off['errors'])} to {len(on['errors'])} ({on['errors'][0]})"
    if on["seconds"] > SLOWER * off["seconds"] + 0.1:  # what a process pays once
        found["seconds"] = f"{off['seconds']:.1f} to {on['seconds']:.1f}"
    return found


def table(lines: Sequence[Line]) -> int:
    """Print what the lines show; how many models are worse without a known reason."""
    alive = [line for line in lines if "died" not in line["off"] and "died" not in line["on"]]
    for what in ("graphs", "operations", "recompiled", "seconds"):
        total = [sum(line[arm][what] for line in alive) for arm in ("off", "on")]
        print(f"{what:12}{total[0]:12.1f} without, {total[1]:12.1f} with, in all")
    ratios = [line["on"]["seconds"] / line["off"]["seconds"] for line in alive if line["off"]["seconds"]]
    quartiles = ", ".join(f"{ratio:.2f}" for ratio in statistics.quantiles(ratios, n=4)) if len(ratios) > 1 else "-"
    print(f"{len(lines)} models, {len(alive)} of them in both arms; ratio of seconds, quartiles: {quartiles}")
    return sum(1 for name, what, numbers in _worse(lines) if _told(name, what, numbers))


def _worse(lines: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        for what, numbers in what_is_worse(line).items():
            yield line["name"], what, numbers


def _told(name: str, what: str, numbers: str) -> bool:
    """Say what is worse; is no reason known?"""
    reason = KNOWN.get((name, what), "")
    print(f"worse: {name}: {what} {numbers}{'; ' + reason if reason else ''}")
    return not reason


def main() -> int:
    about, _, details = (__doc__ or "").partition("\n")
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench.worse", description=about + details, formatter_class=form)
    parser.add_argument("source", nargs="?")
    parser.add_argument("out", type=Path, nargs="*")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--table", action="store_true", help="of the files that are named")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.source is None or not (given.out or given.serve or given.table):
        parser.error("SOURCE and OUT.jsonl are needed, or --table and files")
    if given.serve:
        serve(source_of(given.source))
        return 0
    if not given.table:
        measure(given.source, given.out[0], given.only)
    files = [Path(given.source), *given.out] if given.table else given.out
    lines = [json.loads(text) for file in files for text in file.read_text(encoding="utf-8").splitlines()]
    return 1 if table(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
