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

import argparse
import contextlib
import copy
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from .arms import ROOT, environment

CALLS = 10
TIMEOUT = 300
SLOWER = 1.3
Case = tuple[Callable[..., Any], list[tuple[tuple[Any, ...], dict[str, Any]]]]
Line = dict[str, Any]

# What is worse, by model and by what is worse of it, and why.
_ONE_GRAPH = "one graph at the first call; where another image has no box, or one, it is compiled anew with breaks"
KNOWN: dict[tuple[str, str], str] = {
    ("phi3_long", "recompiled"): "the model keeps what the first call makes, and the one graph is guarded on it",
    ("fasterrcnn", "recompiled"): _ONE_GRAPH,
    ("fasterrcnn", "seconds"): _ONE_GRAPH,
}


# --- one arm: it builds what it is told to, and answers what was seen ------------------------------------------------


def serve(source: str) -> None:
    """Answer each name that comes in with a line of JSON; each model has a process of its own, forked from this one."""
    build, modules = _source(source)
    if os.environ.get("BENCH_HOOK"):
        import graphmend_hook

        graphmend_hook.install(modules)
    importlib.import_module("torch._dynamo.convert_frame")
    build("")
    for name in map(str.strip, sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "seen.json")
            child = os.fork()
            if not child:
                _answer(build, name, answer)
            os.waitpid(child, 0)
            print(answer.read_text(encoding="utf-8") if answer.exists() else '{"died": "killed"}', flush=True)


def _answer(build: Callable[[str], Case], name: str, answer: Path) -> None:
    import signal

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


def _source(source: str) -> tuple[Callable[[str], Case], list[str]]:
    """How to build a model of the source by its name ("" only imports what all of them need), and what is mended."""
    if source == "rows":
        return _row, ["transformers"]
    if Path(source, "census.py").exists():
        sys.path.insert(0, str(Path(source).resolve()))
        return _type, ["transformers"]
    from .ecosystem import MODULES

    return lambda name: _case(source, name), list(MODULES[source])


def _row(name: str) -> Case:
    import torch
    import transformers  # noqa: F401

    from .models import rows

    if not name:
        return print, []
    torch.set_grad_enabled(False)
    model, calls = rows.build(name)
    return model, [((), _changed(calls[number % len(calls)], number)) for number in range(CALLS)]


def _type(name: str) -> Case:
    """The model and inputs that the survey compiles, caught where it does so."""
    import torch

    census = importlib.import_module("census")
    if not name:
        return print, []
    caught: list[Any] = []

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


def _case(library: str, name: str) -> Case:
    cases = importlib.import_module(f"bench.ecosystem.cases.{library}").CASES
    if not name:
        return print, []
    import torch

    build, inputs = cases[name]
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


def names_of(source: str) -> list[str]:
    if source == "rows":
        from .models import rows

        return rows.present(metadata.version("transformers"))
    if Path(source, "census.py").exists():
        sys.path.insert(0, str(Path(source).resolve()))
        return list(importlib.import_module("census").order()[0])
    return list(importlib.import_module(f"bench.ecosystem.cases.{source}").CASES)


def measure(source: str, out: Path, only: Sequence[str]) -> None:
    """Append a line to `out` for each model that it has not yet."""
    done = (
        {json.loads(line)["name"] for line in out.read_text(encoding="utf-8").splitlines()} if out.exists() else set()
    )
    with tempfile.TemporaryDirectory() as folder:
        arms = {arm: _start(source, arm, Path(folder)) for arm in ("off", "on")}
        for name in only or names_of(source):
            if name in done:
                continue
            line = {"name": name, "source": Path(source).name} | {arm: _ask(arms[arm], name) for arm in arms}
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line)[:240], flush=True)
        for process in arms.values():
            process.stdin.close()
            process.wait()


def _start(source: str, arm: str, folder: Path) -> subprocess.Popen[str]:
    variables = environment("off", folder) | ({"BENCH_HOOK": "1"} if arm == "on" else {}) | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bench.worse", source, "--serve"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, cwd=ROOT, text=True, bufsize=1
    )


def _ask(process: subprocess.Popen[str], name: str) -> Line:
    assert process.stdin
    assert process.stdout
    process.stdin.write(name + "\n")
    for text in process.stdout:
        if text.startswith("{"):
            answer: Line = json.loads(text)
            return answer
    raise RuntimeError(f"bench.worse: the arm ended at {name}")


def what_is_worse(line: Line) -> dict[str, str]:
    """By name, what of a model is worse with the hook, in numbers."""
    off, on = line["off"], line["on"]
    if "died" in off:
        return {}
    if "died" in on:
        return {"died": on["died"]}
    found = {}
    if on["operations"] < off["operations"]:
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
        serve(given.source)
        return 0
    if not given.table:
        measure(given.source, given.out[0], given.only)
    files = [Path(given.source), *given.out] if given.table else given.out
    lines = [json.loads(text) for file in files for text in file.read_text(encoding="utf-8").splitlines()]
    return 1 if table(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
