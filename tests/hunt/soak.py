"""Threads that call compiled functions for a long time: ``python -m tests.hunt.soak [--calls 200000] [--threads 8]``.

The functions of `soak_module` log, raise, read a number and choose a side.  Every record and every exception has to come
in the thread that caused it, once, with its own values; nothing may be compiled after the warm-up; and the memory of the
process may not grow.

Exit status: 0 if all holds.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from observing import Counting, PerThread, import_mended

GROWTH = 8.0  # MiB that allocators may take after a quarter of the calls


def resident() -> float:
    """MiB of this process's memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def one_call(functions: dict[str, Any], handler: PerThread, who: int, number: int) -> str:
    """Make a call; what is wrong with it, else ""."""
    import torch

    name = ("says", "guards", "reads", "chooses")[number % 4]
    sign = -1.0 if number % 3 == 0 else 1.0
    x = torch.full((4,), sign * (who + 1))
    handler.take()
    try:
        if name == "reads":
            n = 2 + number % 2
            right = functions[name](x, torch.tensor(n)).tolist() == [2.0 * sign * (who + 1)] * n
            said: list[str] = []
        else:
            found = functions[name](x, who).tolist()
            value = sign * (who + 1)
            expected = {"says": value * 2 + 1, "guards": value + who, "chooses": value + sign}[name]
            right = found == [expected] * 4
            text = f"caller {who} has tensor({value * 2:.0f}.)" if name == "says" else f"caller {who} chose"
            said = [text] if name != "guards" else []
            right = right and not (name == "guards" and sign < 0)
    except ValueError as error:
        right = name == "guards" and sign < 0 and str(error) == f"negative: {sign * (who + 1)}"
        said = []
    records = handler.take()
    return "" if right and records == said else f"thread {who}, call {number} of {name}: {records}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.hunt.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--backend", default="eager")
    given = parser.parse_args()
    import torch

    module = import_mended(Path(__file__).with_name("soak_module.py"), "soak_module")
    handler = PerThread()
    module.logger.addHandler(handler)
    module.logger.setLevel(logging.INFO)
    module.logger.propagate = False
    logging.getLogger("graphmend_hook").setLevel(logging.ERROR)  # GM009 says of each guard that its graph ran
    counting = Counting(given.backend)
    names = ("says", "guards", "reads", "chooses")
    functions = {name: torch.compile(getattr(module, name), backend=counting) for name in names}
    wrong: list[str] = []
    share = given.calls // given.threads

    def calls(who: int, first: int, last: int) -> None:
        with torch.no_grad():
            found = (one_call(functions, handler, who, number) for number in range(first, last))
            wrong.extend(text for text in found if text)

    def all_threads(first: int, last: int) -> None:
        with ThreadPoolExecutor(given.threads) as pool:
            for done in [pool.submit(calls, who, first, last) for who in range(given.threads)]:
                done.result()

    for who in range(given.threads):  # one after the other
        calls(who, 0, 24)
    all_threads(0, 24)
    graphs, start = counting.graphs, time.monotonic()
    all_threads(24, share // 4)
    before = resident()
    all_threads(share // 4, share)
    grown = resident() - before
    print(
        f"{share * given.threads} calls in {given.threads} threads, {time.monotonic() - start:.0f} s: "
        f"{len(wrong)} wrong, {counting.graphs} graphs, {counting.graphs - graphs} of them after the warm-up, "
        f"{grown:+.1f} MiB in the last three quarters"
    )
    print(*wrong[:10], sep="\n")
    return int(bool(wrong) or counting.graphs != graphs or grown > GROWTH)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
        sys.exit(main())
