"""What the hook costs where it gains nothing: whole programs, forward passes in eager, tracing."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arms import workers
from .latency import PAIR
from .processes import ALL

FORWARD = ("t5", "whisper", "bart", "marian", "blenderbot", "biogpt", "pegasus", "layoutlmv3", "phi3", "grounding_dino")
TRACED = ("t5", "bart_fp16", "blenderbot")


def forward(rows: Sequence[str], rounds: int, calls: int) -> dict[str, dict[str, Any]]:
    """Eager forward passes of one model in one process, its code alternating between the hook's and the library's."""
    found: dict[str, dict[str, Any]] = {}
    with workers("on") as (worker,):
        for row in rows:
            worker("build", row=row)
            answer = worker("both", rounds=rounds, calls=calls)
            problem = "" if answer["changed_calls"] else "no changed code is called"
            found[row] = {"problem": problem, **answer, "ratio": _ratio(answer["seconds"])}
    return found


def tracing(rows: Sequence[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Seconds that Dynamo takes to trace a model, as long as all else is equal: the eager backend, nothing cached."""
    found: dict[str, dict[str, Any]] = {}
    with workers(*PAIR) as pair:
        for row in rows:
            seconds: dict[str, list[float]] = {worker.arm: [] for worker in pair}
            for worker in pair:
                worker("build", row=row)
                worker("compile", backend="eager")
            for _ in range(rounds):
                for worker in pair:
                    seconds[worker.arm].append(worker("compile", backend="eager")["tracing"])
            found[row] = {"seconds": seconds, "ratio": _ratio(seconds)}
    return found


def _ratio(seconds: dict[str, list[float]]) -> list[float]:
    """Quartiles of mended to untouched, by round."""
    ratios = [mended / plain for plain, mended in zip(seconds["off"], seconds["on"], strict=True)]
    return statistics.quantiles(ratios, n=4)


def whole_processes(repeats: int, names: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "processes.json")
        subprocess.run([sys.executable, "-m", "bench.processes", str(out), str(repeats), *names], check=True)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def measure(quick: bool) -> dict[str, Any]:
    return {
        "processes": whole_processes(3 if quick else 10, ("one model", "no torch") if quick else ALL),
        "forward": forward(FORWARD[:2] if quick else FORWARD, 10 if quick else 60, 10),
        "tracing": tracing(TRACED[:1] if quick else TRACED, 3),
    }
