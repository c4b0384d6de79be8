"""Which lines of the package a hunt reaches: ``python -m tests.hunt.reach FILE [FILE ...]``.

FILE is what ``python -m tests.hunt --reach FILE`` keeps.  A line counts as reached if the interpreter ran it or Dynamo
traced it in one of them; those of `rules/` and `engine/` that none reached are listed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

PARTS = ("rules", "engine", "runtime")


@contextmanager
def recorded(out: Path) -> Iterator[None]:
    """Keep in `out` which lines of the package run, or are traced, inside; nothing of it may have been imported yet."""
    import coverage
    import torch

    context: Any = torch._guards.TracingContext
    traced: set[tuple[str, int]] = set()
    original = context.set_current_loc

    def note(filename: str, lineno: int, frame_name: str) -> None:
        traced.add((filename, lineno))
        original(filename, lineno, frame_name)

    measured = coverage.Coverage(data_file=None, source_pkgs=["graphmend_hook"], messages=False)
    measured.start()
    try:
        with mock.patch.object(context, "set_current_loc", staticmethod(note)):
            yield
    finally:
        measured.stop()
        package = os.path.join(os.path.dirname(sys.modules["graphmend_hook"].__file__ or ""), "")
        found = {}
        for file in measured.get_data().measured_files():
            _, statements, _, missing, _ = measured.analysis2(file)
            reached = ({*statements} - {*missing}) | {line for name, line in traced if name == file}
            found[file.removeprefix(package)] = {
                "statements": statements,
                "reached": sorted(reached & {*statements}),
            }
        out.write_text(json.dumps(found), encoding="utf-8")


def lines(files: Iterable[str]) -> Iterator[str]:
    """A line for each file of the package that has statements which were not reached, and the sum."""
    statements: dict[str, set[int]] = {}
    reached: dict[str, set[int]] = {}
    for file in files:
        for name, seen in json.loads(Path(file).read_text(encoding="utf-8")).items():
            statements.setdefault(name, set()).update(seen["statements"])
            reached.setdefault(name, set()).update(seen["reached"])
    watched = [name for name in sorted(statements) if name.startswith(PARTS)]
    for name in watched:
        if missing := statements[name] - reached[name]:
            yield f"{name}: {len(reached[name])} of {len(statements[name])}; not {_ranges(sorted(missing))}"
    yield f"{sum(len(reached[n]) for n in watched)} of {sum(len(statements[n]) for n in watched)} statements were reached"


def _ranges(numbers: list[int]) -> str:
    """ "3-5, 8" for 3, 4, 5 and 8."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups)


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1:])))
