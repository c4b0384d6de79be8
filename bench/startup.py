"""What the start of a process costs with this package: ``python -m bench.startup [CHECKOUT ...] [--runs N]``.

Fresh processes that do nothing else, in turn: plain python; a `sitecustomize` with ``GRAPHMEND_MODULES`` unset;
``import graphmend_hook`` with it unset, and with it set.  The last for each CHECKOUT too (another state).
Printed are medians of milliseconds beyond plain python, of processor time and of the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_PROJECT = Path(__file__).parents[1]
Times = tuple[float, float]


def measure(code: str, environment: Mapping[str, str]) -> Times:
    """Milliseconds of processor time, and of the clock, of one process."""
    start = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], dict(environment))
    _, status, used = os.wait4(pid, 0)
    clock = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{code!r} ended with {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1000, clock * 1000


def arms(checkouts: list[Path], folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """By name: the code that a process runs, and its environment."""
    (folder / "sitecustomize.py").write_text(
        "import os\nif os.environ.get('GRAPHMEND_MODULES'):\n    import graphmend_hook\n", encoding="utf-8"
    )
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("GRAPHMEND_", "PYTHON"))}
    cache = {"GRAPHMEND_CACHE_DIR": str(folder / "cache")}
    own = clean | {"PYTHONPATH": str(_PROJECT)}
    found = {
        "plain python": ("pass", own),
        "sitecustomize, unset": ("pass", clean | {"PYTHONPATH": f"{folder}{os.pathsep}{_PROJECT}"}),
        "import, unset": ("import graphmend_hook", own),
    }
    for checkout in (_PROJECT, *checkouts):
        environment = clean | {"PYTHONPATH": str(checkout), "GRAPHMEND_MODULES": "transformers"}
        found[f"import, set, {checkout.name}"] = ("import graphmend_hook", environment)
        found[f"import, set, cache directory set, {checkout.name}"] = ("import graphmend_hook", environment | cache)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    checkouts = [checkout.resolve() for checkout in options.checkouts]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # -c finds modules in the current directory first
        measured = arms(checkouts, Path(folder))
        times: dict[str, list[Times]] = {name: [] for name in measured}
        for run in range(options.runs + 1):
            for name, (code, environment) in measured.items():
                found = measure(code, environment)
                if run:  # the first fills the caches of python and of the machine
                    times[name].append(found)
    plain = times["plain python"]
    print("milliseconds beyond plain python           processor   clock")
    for name, found_times in times.items():
        beyond = [
            statistics.median(each[index] - other[index] for each, other in zip(found_times, plain, strict=True))
            for index in (0, 1)
        ]
        print(f"{name:45}{beyond[0]:7.2f} {beyond[1]:7.2f}")


if __name__ == "__main__":
    main()
