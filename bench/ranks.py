"""Eight ranks of a job that import one model at once: ``python -m bench.ranks [REPEATS] [RANKS]``.

For each state of the cache: seconds until the last rank is done, seconds of processor time of all of them, modules that
were rewritten by all of them, and the peak memory of one rank.  Arms in turn; median and extremes.
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
from pathlib import Path

from .arms import environment
from .processes import ONE_MODEL

WITHOUT, WARM, EMPTY, ALONE = "without the hook", "warm cache", "empty cache", "empty cache, nobody waits"
ARMS = (WITHOUT, WARM, EMPTY, ALONE)
IMPATIENT = "from graphmend_hook.hook import claims; claims.PATIENCE = 0"
HOOKED = "import graphmend_hook; graphmend_hook.install('transformers')"


def together(arm: str, ranks: int, folder: Path) -> dict[str, float]:
    """Start the ranks, wait for all of them, and add up what they say.  folder: where the cache lives."""
    env = environment("off", folder)
    if arm in (EMPTY, ALONE):
        shutil.rmtree(env["GRAPHMEND_CACHE_DIR"], ignore_errors=True)
    lines = [IMPATIENT] if arm == ALONE else []
    lines += [] if arm == WITHOUT else [HOOKED]
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    env["GRAPHMEND_REPORT"] = f"{reports}/{{pid}}.json"
    command = [sys.executable, "-c", "\n".join([*lines, ONE_MODEL])]
    start = time.perf_counter()
    processes = [subprocess.Popen(command, env=env) for _ in range(ranks)]
    usages = []
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"{arm}: a rank failed with {status}")
        usages.append(usage)
    return {
        "seconds": time.perf_counter() - start,
        "processor seconds": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "rewritten": sum(json.loads(file.read_text())["processes"][0]["misses"] for file in reports.iterdir()),
        "MiB of one": max(usage.ru_maxrss for usage in usages) / 1024,
    }


def main(repeats: int, ranks: int) -> None:
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory() as folder:
        together(EMPTY, ranks, Path(folder))  # the files of the machine are read once
        for number in range(repeats):
            for arm in (WITHOUT, EMPTY, WARM, ALONE) if number % 2 else (WITHOUT, ALONE, WARM, EMPTY):
                found[arm].append(together(arm, ranks, Path(folder)))
    print(f"{ranks} ranks, {repeats} rounds: median (least to greatest)")
    for arm in ARMS:
        parts = []
        for name in found[arm][0]:
            numbers = [one[name] for one in found[arm]]
            parts.append(f"{name} {statistics.median(numbers):.1f} ({min(numbers):.1f} to {max(numbers):.1f})")
        print(f"{arm}: {', '.join(parts)}")


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["5", "8"][len(sys.argv) - 1 :])))
