"""``python -m bench [--quick] [--only NAME]``: measures, keeps the numbers under bench/results/, prints the tables.

--quick: few rows and repeats; its numbers are kept in a folder of their own that git ignores.
"""

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

from rich.console import Console

from . import tables

HERE = Path(__file__).parent
PARTS = ("breaks", "latency", "overhead")


def machine() -> dict[str, Any]:
    """Hardware, versions and command: what a number means nothing without."""
    import torch

    versions = {name: metadata.version(name) for name in ("torch", "transformers", "graphmend_hook")}
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    return {
        "versions": {"python": platform.python_version(), **versions},
        "machine": {
            "processor": processor,
            "cores": os.cpu_count(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "command": "python -m bench " + " ".join(sys.argv[1:]),
    }


def micro(quick: bool) -> dict[str, float]:
    """The best time of each operation in seconds, by the name of its benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "micro.json")
        speed = ["--benchmark-max-time=0.2", "--benchmark-min-rounds=3" if quick else "--benchmark-min-rounds=5"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_micro.py")]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        options = [f"--benchmark-json={out}", "--benchmark-columns=min,median,iqr", "--benchmark-sort=name", *speed]
        options += ["--benchmark-warmup=on", "--benchmark-disable-gc"]
        subprocess.run([*command, *options], check=True, env=environment)
        found = json.loads(out.read_text(encoding="utf-8"))["benchmarks"]
    return {item["name"].removeprefix("test_"): item["stats"]["min"] for item in found}


def measure_overhead(quick: bool) -> dict[str, Any]:
    from . import calls, overhead, probing

    return {
        "micro_best_seconds": micro(quick),
        "calls_us": calls.measure(5 if quick else 20),
        "probes_ms": probing.measure(3 if quick else 15),
        **overhead.measure(quick),
    }


def measure_breaks(quick: bool) -> dict[str, Any]:
    from . import breaks

    names = ["t5", "bart_fp16"] if quick else breaks.present(metadata.version("transformers"))
    return {"lines": breaks.measure(names, ["eager"] if quick else ["eager", "inductor"])}


def measure_latency(quick: bool) -> dict[str, Any]:
    import torch

    from . import latency

    found: dict[str, Any] = {}
    for name, setting in latency.settings(quick, torch.cuda.is_available()).items():
        found[name] = []
        for row in setting.rows:
            print(f"bench: {name}: {row} ...", file=sys.stderr, flush=True)
            found[name].append(latency.measure(row, setting))
    return {"settings": found}


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench")
    parser.add_argument("--quick", action="store_true", help="few rows and repeats: minutes instead of half an hour")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    given = parser.parse_args()
    target = HERE / "results" / ("quick" if given.quick else "")
    target.mkdir(parents=True, exist_ok=True)
    console = Console(width=160)
    for part in PARTS if given.only is None else (given.only,):
        found = globals()[f"measure_{part}"](given.quick)
        path = target / f"{part}-{metadata.version('transformers')}.json"
        path.write_text(json.dumps({**machine(), **found}, indent=1) + "\n", encoding="utf-8")
        for table in tables.of(path):
            table.show(console)
        console.print(f"numbers kept in {path}\n")


if __name__ == "__main__":
    main()
