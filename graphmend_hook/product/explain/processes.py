"""What was seen in the program and in the processes that it started, as one observation, named by process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..report.merging import merge
from .following import FIRST

Seen = dict[str, Any]


def gather(folder: Path) -> Seen | None:
    """All that was written into `folder`; None if the program itself has written nothing."""
    first = folder / FIRST
    if not first.is_file():
        return None
    children = [_read(file) for file in folder.glob("*.json") if file != first]
    return joined(_read(first), sorted(children, key=_order))


def _read(file: Path) -> Seen:
    seen: Seen = json.loads(file.read_text(encoding="utf-8"))
    return seen


def _order(seen: Seen) -> tuple[int, float]:
    (process,) = seen["report"]["processes"]
    return -1 if process["rank"] is None else process["rank"], seen["began"]


def joined(first: Seen, children: Sequence[Seen]) -> Seen:
    """What the program saw, and then what each of `children` did: its regions and breaks bear its name."""
    names: Counter[str] = Counter()
    regions, breaks = list(first["regions"]), [{**each, "process": ""} for each in first["breaks"]]
    for seen in children:
        names[seen["process"]] += 1
        again = names[seen["process"]]
        name = seen["process"] if again == 1 else f"{seen['process']} #{again}"
        regions += [{**region, "name": f"{region['name']} in {name}"} for region in seen["regions"]]
        breaks += [{**each, "process": name} for each in seen["breaks"]]
    reports = [(seen["process"], seen["report"]) for seen in (first, *children)]
    backends = [*dict.fromkeys(name for seen in (first, *children) for name in seen["backends"])]
    return {"regions": regions, "breaks": breaks, "backends": backends, "report": merge(reports)}
