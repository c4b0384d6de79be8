"""Graph breaks of every row, without the hook, with PyTorch's own switches, and with the hook, beside the paper's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from .arms import ARMS, ROOT, environment
from .models import rows

# By row of ours: what the paper calls it, how many of its rows that stands for, and the breaks that its published
# artifact leaves.  The six rows of models from the network are left out, and the half-precision ones are ours alone.
PAPER: dict[str, tuple[str, int, int]] = {
    "t5": ("t5-small, -base, -3b, flan-t5-large, it5", 5, 0),
    "whisper": ("whisper-small, -base, -large", 3, 0),
    "bart": ("bart-base, bart-large-cnn, rebel-large", 3, 0),
    "marian": ("opus-mt", 1, 0),
    "blenderbot": ("blenderbot-400M-distill", 1, 0),
    "biogpt": ("biogpt", 1, 0),
    "pegasus": ("pegasus", 1, 0),
    "layoutlmv3": ("layoutlmv3", 1, 0),
    "phi3": ("Phi-4-mini", 1, 0),
    "grounding_dino": ("grounding-dino-tiny, -base", 2, 7),
    "longformer": ("longformer-base-4096", 1, 3),
    "clap": ("clap-htsat-fused", 1, 2),
}
# Variants that the tests have beside the rows: other values, single modules.
_VARIANTS = ("_attention", "_lengths", "_global", "_mixed", "_long")
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2}


def present(version: str) -> list[str]:
    """The rows that the installed transformers has."""
    return [name for name in rows.present(version) if not name.endswith(_VARIANTS)]


def measure(names: Iterable[str], backends: Sequence[str], jobs: int = 2) -> list[dict[str, Any]]:
    """A line for each row and arm, with the untouched arm's eager results as what all are compared with."""
    names = list(names)
    longest_first = names[::-1]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda name: _observe_row(name, backends, Path(folder, name)), longest_first)
        seen = dict(zip(longest_first, found, strict=True))
    return [summary(name, arm, seen[name]["off"], seen[name][arm]) for name in names for arm in ARMS]


def _observe_row(name: str, backends: Sequence[str], folder: Path) -> dict[str, Any]:
    """By arm, one after the other."""
    folder.mkdir()
    seen = {"off": _observe(name, "off", backends, folder)}
    # PyTorch's switches with a quick backend first: where they change no graph, the others have nothing new to say.
    seen["knobs"] = _observe(name, "knobs", backends[:1], folder)
    if _graphs(seen["knobs"]) != _graphs(seen["off"]) and len(backends) > 1:
        seen["knobs"] |= _observe(name, "knobs", backends[1:], folder)
    seen["on"] = _observe(name, "on", backends, folder)
    return seen


def _graphs(seen: dict[str, Any]) -> list[int]:
    return [] if "died" in seen else [call["graphs"] for call in seen["compiled eager"]["calls"]]


def _observe(name: str, arm: str, backends: Sequence[str], folder: Path) -> dict[str, Any]:
    out = folder / f"{arm}.pt"
    command = [sys.executable, "-m", "bench.observation", name, str(out), *backends]
    # All rows and arms share what Inductor has compiled: nothing is timed here but tracing.
    env = environment(arm, folder) | {"TORCHINDUCTOR_CACHE_DIR": str(folder.parent / "inductor")}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"died": done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]}
    seen: dict[str, Any] = torch.load(out)
    return seen


def summary(name: str, arm: str, plain: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """One line of the table; `plain` is the untouched arm, whose eager results are the right ones."""
    line: dict[str, Any] = {"row": name, "arm": arm}
    if "died" in seen or "died" in plain:
        return {**line, "died": (seen if "died" in seen else plain)["died"][0]}
    right = plain["eager"]["calls"]
    calls = seen["compiled eager"]["calls"]
    failed = next((call["error"] for call in calls if call["error"]), None)
    line |= {
        "graphs": calls[0]["graphs"],
        "breaks": calls[0]["graphs"] - 1 if failed is None else None,
        "error": failed and f"{failed[0]}: {failed[1].strip().splitlines()[0]}",
        "fullgraph": seen["fullgraph"],
        "equal": failed is None and all(map(same_output, right, calls)),
        "records": [call["records"] for call in calls] == [call["records"] for call in right],
        "recompiled": calls[-1]["graphs"] - calls[0]["graphs"],
        "tracing_seconds": seen["compiled eager"]["tracing"],
    }
    if "compiled inductor" in seen:
        found = seen["compiled inductor"]["calls"]
        tolerance = _TOLERANCE[rows.ROWS[name].dtype]
        line["inductor"] = all(same_output(a, b, tolerance) for a, b in zip(right, found, strict=True))
    return line


def same_output(right: dict[str, Any], found: dict[str, Any], tolerance: float = 0.0) -> bool:
    """Are the tensors equal, bit by bit if there is no tolerance?"""
    if found["error"] or right["error"]:
        return bool(found["error"] == right["error"])
    if len(found["output"]) != len(right["output"]):
        return False
    return all(
        a.dtype is b.dtype and a.shape == b.shape and torch.allclose(a, b, tolerance, tolerance, equal_nan=True)
        for a, b in zip(right["output"], found["output"], strict=True)
    )


def totals(lines: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Breaks of all rows, each counted once, before and after; a row that dies is left out."""
    by_arm = {arm: {line["row"]: line.get("breaks") for line in lines if line["arm"] == arm} for arm in ("off", "on")}
    common = [row for row, breaks in by_arm["off"].items() if breaks is not None and by_arm["on"].get(row) is not None]
    before, after = (sum(by_arm[arm][row] for row in common) for arm in ("off", "on"))
    return {
        "rows": len(common),
        "before": before,
        "after": after,
        "to zero": sum(by_arm["on"][row] == 0 for row in common),
    }


def paper_totals(lines: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The same over the paper's rows, of which one of ours stands for several; "paper": what its artifact leaves."""
    found = {(line["row"], line["arm"]): line.get("breaks") for line in lines}
    counted = [(row, times, left) for row, (_, times, left) in PAPER.items() if found.get((row, "on")) is not None]
    return {
        "rows": sum(times for _, times, _ in counted),
        "before": sum(times * found[row, "off"] for row, times, _ in counted),
        "after": sum(times * found[row, "on"] for row, times, _ in counted),
        "paper": sum(times * left for _, times, left in counted),
        "to zero": sum(times for row, times, _ in counted if found[row, "on"] == 0),
        "to zero in the paper": sum(times for _, times, left in counted if left == 0),
    }
