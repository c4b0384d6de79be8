"""Many calls of small modules as people write them.

``python -m bench.everyday FOLDER OUT.json [--calls N] [--only A,B]``

FOLDER has modules with ``CASES``, by the name of each ``build``, which makes a module, and ``calls``, which makes a
list of arguments, as `tests/compiled/everyday` has; the calls go through that list again and again.  Each case runs in
three processes: eager, compiled without the hook, and with it.  A line of the table: graphs compiled in the first
twelve calls, and in all others; graphs that the last call runs; how much the memory of the process (MiB) grew in the
second half of the calls; whether as much was logged, printed, warned and raised as in eager.
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the cases are imported

import argparse
import contextlib
import gc
import importlib
import io
import json
import logging
import random
import resource
import subprocess
import warnings
from pathlib import Path
from typing import Any

FIRST = 12
ARMS = ("eager", "off", "on")


class _Count(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += not record.name.startswith(("torch", "graphmend"))


def observe(stem: str, name: str, arm: str, calls: int) -> dict[str, Any]:
    """What `calls` calls of a case come to in this process."""
    import numpy
    import torch

    from .ecosystem.arm import Counted

    case = importlib.import_module(stem).CASES[name]
    torch.manual_seed(0)
    module, graphs, records = case["build"](), Counted(), _Count()
    function = module if arm == "eager" else torch.compile(module, backend=graphs)
    logging.getLogger().addHandler(records)
    logging.getLogger().setLevel(logging.INFO)
    torch.manual_seed(1)
    given, marks, printed, errors = case["calls"](), [], io.StringIO(), 0
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for call in range(calls):
            for seed in (torch.manual_seed, random.seed, numpy.random.seed):
                seed(call)
            compiled, ran = graphs.graphs, graphs.runs
            try:
                function(*given[call % len(given)])
            except Exception:
                errors += 1
            marks.append((graphs.graphs - compiled, graphs.runs - ran))
            if call == calls // 2:
                gc.collect()
                half = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - half) / 1024
    return {
        "first": sum(compiled for compiled, _ in marks[:FIRST]),
        "later": sum(compiled for compiled, _ in marks[FIRST:]),
        "runs": marks[-1][1],
        "grown": round(grown, 1),
        "effects": [
            records.number,
            len(printed.getvalue()),
            sum(stem in str(each.filename) for each in warned),
            errors,
        ],
    }


def run(folder: Path, stem: str, name: str, arm: str, calls: int) -> dict[str, Any]:
    """The same in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRAPHMEND")}
    environment |= {"OMP_NUM_THREADS": "1"} | ({"GRAPHMEND_MODULES": stem} if arm == "on" else {})
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), os.getcwd(), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "bench.everyday", "--one", stem, name, arm, str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"failed": done.stderr[-400:]}  # type: ignore[no-any-return]


def main() -> None:
    if sys.argv[1] == "--one":
        stem, name, arm, calls = sys.argv[2:]
        print("\n" + json.dumps(observe(stem, name, arm, int(calls))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--only", default="", help="names of cases, with commas between them")
    options = parser.parse_args()
    folder = options.folder.resolve()
    sys.path.insert(0, str(folder))
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.py")):
        for name in getattr(importlib.import_module(path.stem), "CASES", {}):
            if options.only and name not in options.only.split(","):
                continue
            arms = {arm: run(folder, path.stem, name, arm, options.calls) for arm in ARMS}
            found[f"{path.stem}.{name}"] = arms
            options.out.write_text(json.dumps({"command": sys.argv, "cases": found}, indent=1) + "\n")
            print(line_of(name, arms), flush=True)


def line_of(name: str, arms: dict[str, dict[str, Any]]) -> str:
    """A line of the table."""
    parts = [f"{name:28}"]
    for arm in ARMS[1:]:
        seen = arms[arm]
        if "failed" in seen:
            parts.append(f"{arm}: failed")
            continue
        same = "as in eager" if seen["effects"] == arms["eager"].get("effects") else "effects differ"
        parts.append(
            f"{arm}: {seen['first']}+{seen['later']} graphs, runs {seen['runs']}, {seen['grown']:+.1f} MiB, {same}"
        )
    return " | ".join(parts)


if __name__ == "__main__":
    main()
