"""``python -m bench [--quick]``: run everything, print the ratios, keep the numbers under bench/results/."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from . import programs

HERE = Path(__file__).parent


def micro(quick: bool) -> dict[str, float]:
    """The best time of each operation in seconds, by the name of its benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "micro.json")
        speed = ["--benchmark-max-time=0.2", "--benchmark-min-rounds=3"] if quick else []
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_micro.py")]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        options = [f"--benchmark-json={out}", "--benchmark-columns=min,median,iqr", "--benchmark-sort=name", *speed]
        options += ["--benchmark-warmup=on", "--benchmark-disable-gc"]
        subprocess.run([*command, *options], check=True, env=environment)
        found = json.loads(out.read_text(encoding="utf-8"))["benchmarks"]
    return {item["name"].removeprefix("test_"): item["stats"]["min"] for item in found}


def print_ratios(best: dict[str, float]) -> None:
    rewriting = best["rewrite_t5"] / best["stock_compile_t5"]
    print(f"\nrewrite of modeling_t5.py: {rewriting:.2f} of its stock compile ({best['rewrite_t5'] * 1e3:.1f} ms)")
    print(f"rewrite of modeling_grounding_dino.py: {best['rewrite_grounding_dino'] * 1e3:.1f} ms")
    start = best["sitecustomize_without_the_variable"]
    print(f"sitecustomize without GRAPHMEND_MODULES: {start * 1e3:.2f} ms a process")


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench")
    parser.add_argument("--quick", action="store_true", help="few repeats: seconds instead of minutes")
    quick = parser.parse_args().quick
    best = micro(quick)
    print_ratios(best)
    whole = programs.measure(3 if quick else 10)  # before torch is imported: a child's peak memory counts its parent's
    from . import calls

    per_call = calls.measure(5 if quick else 20)
    versions = {
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "transformers": metadata.version("transformers"),
    }
    result: dict[str, Any] = {"versions": versions, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}
    result |= {"micro_best_seconds": best, "calls_us": per_call, "programs": whole}
    target = HERE / "results" / f"overhead-{'quick' if quick else 'full'}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nnumbers kept in {target}")


if __name__ == "__main__":
    main()
