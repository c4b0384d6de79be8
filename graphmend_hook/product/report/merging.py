"""One report of all the processes of a job, out of theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...diagnostics import GraphmendError
from ...version import __version__
from .ledger import SCHEMA, Document
from .left import mark, unmarked


class ReportError(GraphmendError):
    """A file is not a report that can be used; the message names it and what is wrong."""


def merge(reports: Sequence[tuple[str, Document]]) -> Document:
    """One report of all the processes in `reports`, which are pairs of a file's name and its document.

    An entry of one process is that of another if everything in it is the same but times, cache, and what was left while
    tracing: a site is, if one process left it.  Raises ReportError if two files hold the same process.
    """
    owners: dict[tuple[str, int, str], str] = {}
    processes: list[Document] = []
    modules: dict[str, Document] = {}
    traced: dict[str, Document] = {}
    for file, document in reports:
        first = len(processes)
        for process in document["processes"]:
            identity = (process["host"], process["pid"], process["started"])
            if identity in owners:
                who = f"process {process['pid']} of {process['host']}"
                raise ReportError(f"{file}: {who} is in {owners[identity]} too; give each report once")
            owners[identity] = file
            processes.append(process)
        for entry in document["modules"]:
            known = _united(modules, unmarked(entry), first, cached=None, seconds=0)
            asked = [each for each in (known["cached"], entry["cached"]) if each is not None]
            known["cached"] = all(asked) if asked else None
            known["seconds"] = round(known["seconds"] + entry["seconds"], 6)
        for entry in document["traced"]:
            _united(traced, entry, first)
    mark(modules.values(), traced.values())
    return {
        "schema": SCHEMA,
        "version": __version__,
        "processes": processes,
        "modules": list(modules.values()),
        "traced": list(traced.values()),
    }


def _united(known: dict[str, Document], entry: Document, first: int, **varying: Any) -> Document:
    """The one in `known` for all that are as `entry` but for what is `varying`, with its processes, from `first` on."""
    blank = {**entry, **varying, "processes": []}
    united = known.setdefault(json.dumps(blank, sort_keys=True), blank)
    united["processes"] += [first + index for index in entry["processes"]]
    return united
