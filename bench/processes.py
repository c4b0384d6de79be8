"""Whole processes, arms interleaved: the import of Llama and T5, and the demo's program."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

IMPORT = "import transformers.models.llama.modeling_llama, transformers.models.t5.modeling_t5"
HOOKED_IMPORT = f"import graphmend_hook; {IMPORT}"


@dataclass
class Arm:
    """One way to run a program: seconds and peak memory (MiB) of each run."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    seconds: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def run(self) -> None:
        self.before()
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GRAPHMEND"))}
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *self.command], env={**clean, "HF_HUB_OFFLINE": "1", **self.env})
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds.append(time.perf_counter() - start)
        self.peak.append(usage.ru_maxrss / 1024)
        if status:
            raise RuntimeError(f"{self.name}: {self.command} failed with {status}")


def compare(title: str, arms: list[Arm], repeats: int) -> dict[str, object]:
    """Run every arm once to warm it, then `repeats` times in turn; print and return the ratios to the first arm."""
    for arm in arms:
        arm.run()
        arm.seconds.clear()
        arm.peak.clear()
    for _ in range(repeats):
        for arm in arms:
            arm.run()
    base = arms[0]
    print(f"\n{title} ({repeats} runs each, interleaved)")
    print(f"{'':24}{'median s':>10}{'min':>8}{'max':>8}{'ratio':>8}{'peak MiB':>10}{'ratio':>8}")
    results: dict[str, object] = {}
    for arm in arms:
        # The median of the ratios of neighbouring runs: what drifts on the machine drifts for both.
        ratio = statistics.median(mine / other for mine, other in zip(arm.seconds, base.seconds, strict=True))
        memory = statistics.median(arm.peak) / statistics.median(base.peak)
        low, middle, high = min(arm.seconds), statistics.median(arm.seconds), max(arm.seconds)
        peak = statistics.median(arm.peak)
        print(f"{arm.name:24}{middle:10.3f}{low:8.3f}{high:8.3f}{ratio:8.3f}{peak:10.0f}{memory:8.3f}")
        results[arm.name] = {"seconds": arm.seconds, "ratio": ratio, "peak_mib": arm.peak, "peak_ratio": memory}
    return results


def measure(repeats: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = Path(folder, "cold"), Path(folder, "warm")

        def empty() -> None:
            shutil.rmtree(cold, ignore_errors=True)

        def hooked(cache: Path) -> dict[str, str]:
            return {"GRAPHMEND_MODULES": "transformers", "GRAPHMEND_CACHE_DIR": str(cache)}

        imports = compare(
            "import of Llama and T5",
            [
                Arm("stock", ["-c", IMPORT]),
                Arm("hook warm", ["-c", HOOKED_IMPORT], hooked(warm)),
                Arm("hook cold", ["-c", HOOKED_IMPORT], hooked(cold), empty),
            ],
            repeats,
        )
        import graphmend_hook

        program = str(Path(graphmend_hook.__file__).with_name("demo_t5.py"))
        out = str(Path(folder, "out.json"))
        runner = ["-m", "graphmend_hook", program, out, "inductor"]
        demo = compare(
            "the demo's program, backend inductor",
            [
                Arm("stock", [program, out, "inductor"]),
                Arm("hook warm", runner, {"GRAPHMEND_CACHE_DIR": str(warm)}),
                Arm("hook cold", runner, {"GRAPHMEND_CACHE_DIR": str(cold)}, empty),
            ],
            max(3, repeats // 2),
        )
    return {"import": imports, "demo": demo}
