"""Whole processes, arms interleaved: what the hook costs a program from its start to its end.

``python -m bench.processes OUT REPEATS PROGRAM [PROGRAM ...]``.  It is a process of its own that imports no torch: the
peak memory of a child counts that of its parent.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import graphmend_hook

_TEN = ("bart", "bert", "biogpt", "gpt2", "llama", "marian", "mistral", "phi3", "t5", "whisper")
ONE_MODEL = "import transformers.models.llama.modeling_llama"
PROGRAMS = {
    "one model": ONE_MODEL,
    "ten models": "import " + ", ".join(f"transformers.models.{name}.modeling_{name}" for name in _TEN),
    "pipeline": "from transformers import pipeline",
    "no torch": "import argparse, asyncio, decimal, json, sqlite3",
}
NEW_MACHINE, T5 = "new machine", "compile and run T5, inductor"
ALL = (*PROGRAMS, NEW_MACHINE, T5)


@dataclass
class Arm:
    """One way to run a program: seconds, those of processor time, and peak memory (MiB) of each run."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    emptied: tuple[Path, ...] = ()  # before each run
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def run(self) -> None:
        for directory in self.emptied:
            shutil.rmtree(directory, ignore_errors=True)
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GRAPHMEND"))}
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *self.command], env={**clean, "HF_HUB_OFFLINE": "1", **self.env})
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds.append(time.perf_counter() - start)
        self.processor.append(usage.ru_utime + usage.ru_stime)
        self.peak.append(usage.ru_maxrss / 1024)
        if status:
            raise RuntimeError(f"{self.name}: {self.command} failed with {status}")


def compare(arms: list[Arm], repeats: int, jobs: int = 1) -> dict[str, dict[str, Any]]:
    """Run every arm once to warm it, then `repeats` times in turn; ratios are to the first arm.

    A ratio is the median of those of neighbouring runs: what drifts on the machine drifts for both.  So many jobs run
    at a time, each arm beside every other, in turn.
    """
    for arm in arms:
        arm.run()
        arm.seconds.clear()
        arm.peak.clear()
    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(arm.run) for number in range(repeats) for arm in _turned(arms, number)]:
            done.result()
    base = arms[0]
    found = {}
    for arm in arms:
        ratios = [mine / other for mine, other in zip(arm.seconds, base.seconds, strict=True)]
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        memory = statistics.median(arm.peak) / statistics.median(base.peak)
        found[arm.name] = {"seconds": arm.seconds, "ratio": quartiles, "peak_mib": arm.peak, "peak_ratio": memory}
    return found


def _turned(arms: list[Arm], number: int) -> list[Arm]:
    first = number % len(arms)
    return arms[first:] + arms[:first]


def measure(repeats: int, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """By program: the arms of `compare`.

    names: of PROGRAMS, NEW_MACHINE (the first of them, where there is no .pyc either) and T5.
    """
    with tempfile.TemporaryDirectory() as folder:
        warm, cold, stocks, hooks = (Path(folder, name) for name in ("warm", "cold", "stocks", "hooks"))

        def hooked(cache: Path, **more: str) -> dict[str, str]:
            return {"GRAPHMEND_MODULES": "transformers", "GRAPHMEND_CACHE_DIR": str(cache), **more}

        found: dict[str, dict[str, Any]] = {}
        jobs = min(2, os.cpu_count() or 1)  # importing takes one core
        for name in [name for name in PROGRAMS if name in names]:
            stock, hook = commands(PROGRAMS[name])
            arms = [
                Arm("stock", stock),
                Arm("hook, cached", hook, hooked(warm)),
                Arm("hook, empty cache", hook, hooked(cold), (cold,)),
            ]
            found[f"import: {name}"] = compare(arms, repeats, jobs)
        if NEW_MACHINE in names:
            stock, hook = commands(ONE_MODEL)
            arms = [
                Arm("stock, no bytecode", stock, {"PYTHONPYCACHEPREFIX": str(stocks)}, (stocks,)),
                Arm("hook, no bytecode", hook, hooked(cold, PYTHONPYCACHEPREFIX=str(hooks)), (cold, hooks)),
            ]
            found[f"import: one model, {NEW_MACHINE}"] = compare(arms, min(5, repeats), jobs)
        if T5 in names:
            found[T5] = compare(t5(Path(folder, "out.json"), warm, cold), min(3, repeats))
    return found


def commands(program: str) -> tuple[list[str], list[str]]:
    """Without the hook and with it."""
    return ["-c", program], ["-c", f"import graphmend_hook; {program}"]


def t5(out: Path, warm: Path, cold: Path) -> list[Arm]:
    """The demo's program, which writes what it finds to `out`; the caches of two arms."""
    program = [str(Path(graphmend_hook.__file__).with_name("demo_t5.py")), str(out), "inductor"]
    run = ["-m", "graphmend_hook", *program]
    return [
        Arm("stock", program),
        Arm("hook, cached", run, {"GRAPHMEND_CACHE_DIR": str(warm)}),
        Arm("hook, empty cache", run, {"GRAPHMEND_CACHE_DIR": str(cold)}, (cold,)),
    ]


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as target:
        json.dump(measure(int(sys.argv[2]), tuple(sys.argv[3:])), target)
