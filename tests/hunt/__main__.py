"""``python -m tests.hunt --minutes N --seed S``: programs, until the time is up; what differs is printed, reduced.

Each batch is made of one kind of program, for one backend, in turn: random programs of the grammar (`grammar`), and
functions of installed libraries with statements of the grammar among their own (`mutants`).  The same seed draws the same
programs on every machine; ``--first N`` begins at batch N of them, and a batch is repeated by ``--first N --batches 1``.
What is found is printed as a `Program`, to be added to ``kept.py``, where the suite runs it ever after.

A program may square the size of a tensor in a loop, and be killed with the hunt: ``ulimit -v 20000000`` before an hour of it.

``--device cuda`` makes the inputs on a GPU, and leaves out programs of which an operation fails in eager on the CPU: there
a kernel that fails ends the process's use of the device.

``--reach FILE`` keeps which lines of the package ran or were traced, for ``python -m tests.hunt.reach FILE ...``.

Exit status: 0 nothing was found; 1 something was; 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

os.environ["_GRAPHMEND_DEFECTS"] = "raise"  # an exception of ours that was not expected is a find

from hunt import devices, mutants, reach
from hunt.grammar import program_of
from hunt.spices import SPICES

BATCH = 50
# The kind of every batch, in turn; Inductor compiles each graph for seconds, so its batches are small.
KINDS = ("eager", "eager", "aot_eager", "eager", "eager", "aot_eager", "eager", "inductor")
SHARE = {"inductor": 5}


def hunt(given: argparse.Namespace) -> int:
    """Print what is found; how many programs differ."""
    from hunt.checking import UNCHANGED, check, suits_aot
    from hunt.reducing import reduced

    counted: Counter[str] = Counter()
    found = 0
    ends = time.monotonic() + given.minutes * 60
    number = given.first
    functions = mutants.functions(given.mutate)
    with tempfile.TemporaryDirectory(prefix="pytest-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < ends and number < given.first + given.batches:
            backend = given.backend or KINDS[number % len(KINDS)]
            size = SHARE.get(backend, BATCH)
            start = (given.seed << 40) + number * BATCH
            if functions:
                drawn = mutants.programs_of(functions, start, size)
            else:
                drawn = [program_of(start + index, given.spices) for index in range(size)]
            if backend not in UNCHANGED:
                drawn = [program for program in drawn if suits_aot(program.source)]
            for failure in check(drawn, Path(folder), backend=backend):
                found += 1
                print(f"\nbatch {number}, {backend}:\n{reduced(failure, Path(folder), backend=backend)}", flush=True)
            counted[backend] += len(drawn)
            number += 1
            if sys.stderr.isatty():
                print(f"\r{counted.total()} programs, {found} found", end="", file=sys.stderr, flush=True)
    kinds = ", ".join(f"{count} on {backend}" for backend, count in sorted(counted.items()))
    print(
        f"seed {given.seed}, batches {given.first} to {number - 1}: {counted.total()} programs ({kinds}), {found} found"
    )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    about, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        "python -m tests.hunt", description=about + details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10); the last batch is ended")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first batch")
    parser.add_argument("--batches", type=int, default=sys.maxsize, metavar="N", help="at most so many")
    parser.add_argument("--backend", choices=sorted({*KINDS, "uncompiled"}), help="this one only")
    parser.add_argument("--device", default="cpu", help="where the inputs are made (cpu); cuda, if there is one")
    parser.add_argument("--spices", type=lambda text: text.split(","), default=[], help="these hazards only: A,B,C")
    parser.add_argument("--mutate", type=lambda text: text.split(","), default=[], help="functions of modules: M,N.*")
    parser.add_argument("--reach", type=Path, metavar="FILE", help="keep which lines of the package were reached")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.spices} - {*SPICES}):
        parser.error(f"--spices: no hazard {', '.join(unknown)}; there are {', '.join(sorted(SPICES))}")
    try:
        devices.use(given.device)
    except (RuntimeError, ValueError) as error:
        parser.error(f"--device: {error}")
    with ExitStack() as stack:
        if given.reach:
            stack.enter_context(reach.recorded(given.reach))
        return 1 if hunt(given) else 0


if __name__ == "__main__":
    sys.exit(main())
