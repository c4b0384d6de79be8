"""What it costs to find out which mechanisms work on this torch: ``python -m bench.probing [REPEATS]``.

Fresh processes compile one small mended function for the eager backend, which does least beside it: without asking at
all, where the answer is in the cache directory, and where it is not, so that every mechanism proves itself.  Dynamo is
imported, but has compiled nothing: part of what it does for the first time while we ask, it would do a moment later.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .arms import environment

UNASKED, KNOWN, FIRST = "unasked", "known", "first"
# The question and all until the first compiled call is done; on the wall and of the processor.
ASKED, UNTIL_DONE = "asked", "until done"
CLOCKS = {"": time.perf_counter, " (processor)": time.thread_time}
Times = dict[str, list[float]]  # milliseconds of each process, by what is compared


def once(arm: str, folder: str) -> None:
    """Compile and call the function in this process; prints the times as JSON."""
    import torch
    import torch._dynamo

    from graphmend_hook.engine.door import trust

    from .calls import load_mended

    times: dict[str, float] = {}
    prove = trust.prove

    def timed() -> None:
        if arm != UNASKED:
            found = _timed(ASKED, prove)
            times.update({what: max(times.get(what, 0.0), value) for what, value in found.items()})

    trust.prove = timed
    trust.directory = Path(folder) if arm == KNOWN else None
    function = torch.compile(load_mended("bench_probing", Path(folder)).model_with_a_tensor_log, backend="eager")
    x = torch.ones(4, 4)
    times.update(_timed(UNTIL_DONE, lambda: function(x)))
    if trust.failed:
        raise SystemExit(f"bench.probing: not every mechanism works on torch {torch.__version__}: see graphmend doctor")
    print(json.dumps(times))


def _timed(what: str, action: Callable[[], object]) -> dict[str, float]:
    starts = {name: clock() for name, clock in CLOCKS.items()}
    action()
    return {what + name: (CLOCKS[name]() - start) * 1e3 for name, start in starts.items()}


def measure(repeats: int) -> dict[str, Times]:
    """Print what was measured; gives the times of every arm, interleaved."""
    found: dict[str, Times] = {UNASKED: {}, KNOWN: {}, FIRST: {}}
    with tempfile.TemporaryDirectory() as folder:
        _run(KNOWN, folder)
        for _ in range(repeats):
            for arm, times in found.items():
                for what, value in _run(arm, folder).items():
                    times.setdefault(what, []).append(value)
    print(f"probes ({repeats} processes of each kind, interleaved; medians and quartiles)", *_lines(found), sep="\n")
    return found


def _run(arm: str, folder: str) -> dict[str, float]:
    command = [sys.executable, "-c", f"from bench import probing; probing.once({arm!r}, {folder!r})"]
    done = subprocess.run(command, env=environment("off", Path(folder)), check=True, stdout=subprocess.PIPE, text=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def _lines(found: dict[str, Times]) -> Iterator[str]:
    """What was measured, in words."""
    for clock in CLOCKS:
        asked, until_done = ASKED + clock, UNTIL_DONE + clock
        without, first = found[UNASKED][until_done], found[FIRST][until_done]
        yield f"the first time{clock}: {_spread(found[FIRST][asked])}"
        yield f"known{clock}: {_spread(found[KNOWN][asked])}"
        yield f"first compiled call{clock}: {_spread(without)} unasked; the first time later by " + _spread(
            [after - before for after, before in zip(first, without, strict=True)]
        )


def _spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ms ({low:.2f} to {high:.2f}, least {min(values):.2f})"


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
