"""The paper's three measurements, without the hook and with it, alternating: cold start, steady state, throughput.

``python -m bench.latency ROW ...`` prints those of any rows, in their tiny size, on the installed transformers;
``--train MODEL ...`` those of a training step without the optimizer's, of the models that the tests train.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .arms import ArmFailedError, Worker, differing_inputs, not_mended, workers
from .models import SIZES

ROWS = ("t5", "bart_fp16", "blenderbot", "phi3", "grounding_dino")
PAIR = ("off", "on")
# On a real size: bytes of memory for each parameter that a measurement may take (weights of both arms, activations).
_BYTES_A_PARAMETER = 12
PARAMETERS = {"phi3": 3.8e9, "blenderbot": 3.7e8, "grounding_dino": 1.7e8, "bart_fp16": 1.4e8, "t5": 6.1e7}


@dataclass(frozen=True)
class Setting:
    """What one table is measured with: rounds of calls, alternating between the arms."""

    rows: tuple[str, ...]
    size: str
    batches: tuple[int, ...]
    rounds: int
    calls: int
    device: str = "cpu"
    mode: str | None = None
    dtype: str | None = None  # that of the row
    trained: bool = False


def settings(quick: bool, cuda: bool) -> dict[str, Setting]:
    """What is measured, by title.  On a CPU few: a cold start is a minute of compiling C++."""
    if quick:
        return {"CPU, tiny": Setting(("t5",), "tiny", (1,), rounds=5, calls=20)}
    on_cpu = {
        "CPU, tiny, by batch": Setting(("t5",), "tiny", (1, 8, 32), rounds=15, calls=20),
        "CPU, tiny": Setting(("bart_fp16", "phi3"), "tiny", (1,), rounds=15, calls=20),
        "CPU, medium": Setting(("t5",), "medium", (1,), rounds=15, calls=5),
    }
    on_cuda = {
        f"CUDA, real sizes, {dtype or 'type of the row'}, mode {mode or 'default'}": Setting(
            ROWS, "real", (1, 8, 32), rounds=15, calls=20, device="cuda", mode=mode, dtype=dtype
        )
        for dtype in (None, "bfloat16")
        for mode in (None, "reduce-overhead")
    }
    return on_cuda if cuda else on_cpu | on_cuda  # without a GPU those say that they are not measured


@dataclass(frozen=True)
class Ratio:
    """Of paired values: the median of their quotients, and its quartiles."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, left: Sequence[float], right: Sequence[float]) -> Ratio:
        quotients = [a / b for a, b in zip(left, right, strict=True)]
        return cls(*statistics.quantiles(quotients, n=4))

    @property
    def is_slower(self) -> bool:
        """Is the mended arm slower by more than the spread?  `left` is the untouched one."""
        return self.high < 0.99


def not_measurable(row: str, setting: Setting) -> str:
    """Why `row` cannot be measured on this machine, else ""."""
    if setting.device == "cuda" and not torch.cuda.is_available():
        return "not measured: no CUDA GPU"
    if setting.size != "tiny" and setting.size not in SIZES.get(row, {}):
        return f"not measured: the row has no size {setting.size!r}"
    if setting.size == "real":
        wanted = PARAMETERS.get(row, 0) * _BYTES_A_PARAMETER
        free = torch.cuda.mem_get_info()[0] if setting.device == "cuda" else _free_memory()
        if wanted > free:
            return f"not measured: takes about {wanted / 2**30:.0f} GiB, {free / 2**30:.0f} GiB are free"
    if setting.device == "cpu" and setting.mode == "reduce-overhead":
        return "not measured: CUDA graphs need a CUDA GPU"
    return ""


def _free_memory() -> int:
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def measure(row: str, setting: Setting) -> dict[str, Any]:
    """Both arms of one row; "problem" says why the numbers are no result."""
    problem = not_measurable(row, setting)
    if problem:
        return {"row": row, "problem": problem}
    try:
        with workers(*PAIR) as pair:
            batches = {str(batch): _measure_batch(pair, row, batch, setting) for batch in setting.batches}
            memory = {worker.arm: worker("memory") for worker in pair}
    except ArmFailedError as error:
        return {"row": row, "problem": str(error)}
    problems = [found["problem"] for found in batches.values() if found["problem"]]
    return {"row": row, "problem": "; ".join(dict.fromkeys(problems)), "batches": batches, "memory_mib": memory}


def _measure_batch(pair: Sequence[Worker], row: str, batch: int, setting: Setting) -> dict[str, Any]:
    inputs, cold, seconds = {}, {}, {worker.arm: [] for worker in pair}
    for worker in pair:
        given = {"size": setting.size, "batch": batch, "device": setting.device, "dtype": setting.dtype}
        built = worker("build", row=row, **given, trained=setting.trained)
        inputs[worker.arm] = built["inputs"]
        worker("eager", calls=3)
    for worker in pair:
        cold[worker.arm] = worker("compile", mode=setting.mode)
        worker("steady", calls=setting.calls)
    for _ in range(setting.rounds):
        for worker in pair:
            seconds[worker.arm].append(statistics.median(worker("steady", calls=setting.calls)))
    launched = {worker.arm: worker("launches") for worker in pair}
    graphs = {arm: found["graphs"] for arm, found in launched.items()}
    ratio = Ratio.of(seconds["off"], seconds["on"])
    return {
        "problem": differing_inputs(inputs) or not_mended(graphs),
        "cold": cold,
        "launches": launched,
        "steady_seconds": seconds,
        "steady_speedup": [ratio.low, ratio.middle, ratio.high],
        "slower": ratio.is_slower,
        "throughput": {arm: batch / statistics.median(times) for arm, times in seconds.items()},
    }


def main() -> None:
    from rich.console import Console

    from . import tables

    trained = sys.argv[1:2] == ["--train"]
    setting = Setting(tuple(sys.argv[1 + trained :]), "tiny", (1,), rounds=15, calls=10, trained=trained)
    title = "CPU, tiny, a training step" if trained else "CPU, tiny"
    found = {title: [measure(row, setting) for row in setting.rows]}
    for table in tables.latency({"settings": found}):
        table.show(Console(width=160))


if __name__ == "__main__":
    main()
