"""Eight ranks of a job that import one model at once: ``python -m bench.ranks [--spawn] [--repeats N] [--ranks N]``.

A rank is a process of its own, or with ``--spawn`` one that the program spawns.

For each state of the cache: seconds until the last rank is done, seconds of processor time of all of them, modules that
were rewritten by all of them, and the peak memory of one rank.  Arms in turn; median and extremes.
"""

from __future__ import annotations

import argparse
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
HOOKED = "import graphmend_hook; graphmend_hook.install('transformers', children=True)"
SPAWN = """
import multiprocessing

def work(rank):
    {program}

if __name__ == "__main__":
    {before}
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(rank,)) for rank in range({ranks})]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    raise SystemExit(max(worker.exitcode for worker in workers))
"""


def together(arm: str, ranks: int, folder: Path, spawn: bool) -> dict[str, float]:
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
    if spawn:
        script = folder / "spawn.py"
        script.write_text(SPAWN.format(program=ONE_MODEL, before="; ".join(lines) or "pass", ranks=ranks))
        command[1:] = [str(script)]
    start = time.perf_counter()
    processes = [subprocess.Popen(command, env=env) for _ in range(1 if spawn else ranks)]
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


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.ranks", description=__doc__)
    parser.add_argument("--spawn", action="store_true")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--ranks", type=int, default=8, metavar="N")
    given = parser.parse_args()
    # A process that is spawned knows nothing of what its parent has switched off.
    arms = ARMS[:-1] if given.spawn else ARMS
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
    with tempfile.TemporaryDirectory() as folder:
        together(EMPTY, given.ranks, Path(folder), given.spawn)  # the files of the machine are read once
        for number in range(given.repeats):
            order = arms if number % 2 else [arms[0], *arms[:0:-1]]
            for arm in order:
                found[arm].append(together(arm, given.ranks, Path(folder), given.spawn))
    print(f"{given.ranks} ranks, {given.repeats} rounds: median (least to greatest)")
    for arm in arms:
        parts = []
        for name in found[arm][0]:
            numbers = [one[name] for one in found[arm]]
            parts.append(f"{name} {statistics.median(numbers):.1f} ({min(numbers):.1f} to {max(numbers):.1f})")
        print(f"{arm}: {', '.join(parts)}")


if __name__ == "__main__":
    main()
