"""What happened to each module in this process, and the report of it that JSON files hold and tables are drawn from.

`schema.json` beside this file says what stands in a report, and docs/report.md what it means.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from ...diagnostics import Site, rule_of
from ...engine.attempt import refusals
from ...engine.door import trust
from ...rules.codes import REFUSALS
from ...settings.config import Settings
from ...version import __version__
from .left import mark

Document = dict[str, Any]
SCHEMA = 2  # raised when a field goes away or changes its meaning, not when one is added
# What launchers say about a process: torchrun and its kin, then Slurm's srun.
_RANKS = {
    "rank": ("RANK", "SLURM_PROCID"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS"),
}


class Status(Enum):
    """What became of an allowlisted module."""

    MENDED = "mended"
    UNCHANGED = "unchanged"  # nothing to mend, or every site declined
    PASSED_OVER = "passed over"  # no compiled function reaches it (`hook.allowlist`)
    NOT_ELIGIBLE = "not eligible"  # not loaded from a plain source file, or not by way of a hook
    TOO_EARLY = "imported too early"
    FAILED = "failed"  # an error of ours; the module runs as it is


@dataclass(frozen=True)
class ModuleRecord:
    """One allowlisted module.

    cached: True for a cache hit, False for a miss, None where no cache was asked.  seconds: time of ours spent on it.
    """

    name: str
    path: str
    status: Status
    sites: tuple[Site, ...] = ()
    cached: bool | None = None
    seconds: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class HookRecord:
    """One hook that was installed.

    cache_directory: where its entries live, None where no directory can be used.
    cache_problem: says why it is not read, or not written to, "" while all is well.
    """

    settings: Settings
    cache_directory: Path | None
    cache_problem: Callable[[], str] = lambda: ""


@dataclass
class Ledger:
    """Records by module name; the last one counts, as after a reload.

    started: when the hook's work began in this process, in seconds since the epoch.
    complete: called before a report is made, to add what nobody has told of.
    """

    modules: dict[str, ModuleRecord] = field(default_factory=dict)
    hooks: list[HookRecord] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    complete: Callable[[], None] = lambda: None

    def add(self, record: ModuleRecord) -> None:
        self.modules[record.name] = record

    @property
    def records(self) -> list[ModuleRecord]:
        """A copy, because other threads may be importing."""
        return list(self.modules.values())

    def with_status(self, status: Status) -> list[ModuleRecord]:
        return [record for record in self.records if record.status is status]


ledger = Ledger()


def as_json(ledger: Ledger) -> Document:
    """Everything in `ledger`, with the facts about this process, as of now."""
    ledger.complete()
    records = ledger.records
    torch = getattr(sys.modules.get("torch"), "__version__", None)
    rules = {(record.path, site.line): site.rule for record in records for site in record.sites if not site.code}
    report: Document = {
        "schema": SCHEMA,
        "version": __version__,
        "processes": [
            {
                "pid": os.getpid(),
                "host": host_name(),
                **ranks_of_process(),
                "argv": list(sys.orig_argv),
                "version": __version__,
                "python": ".".join(map(str, sys.version_info[:3])),
                "torch": None if torch is None else str(torch),
                "started": _utc(ledger.started),
                "ended": _utc(time.time()),
                "not_relied_on": [mechanism.value for mechanism in trust.Mechanism if mechanism in trust.failed],
                "hooks": [
                    {
                        **hook.settings.as_json(),
                        "cache_directory": hook.cache_directory and str(hook.cache_directory),
                        "cache_problem": hook.cache_problem(),
                    }
                    for hook in ledger.hooks
                ],
                "hits": sum(record.cached is True for record in records),
                "misses": sum(record.cached is False for record in records),
                "seconds": round(sum(record.seconds for record in records), 6),
            }
        ],
        "modules": [
            {
                **vars(record),
                "status": record.status.value,
                "sites": [{**site._asdict(), "outcome": site.outcome.value} for site in record.sites],
                "seconds": round(record.seconds, 6),
                "processes": [0],
            }
            for record in records
        ],
        "traced": [
            {
                "rule": rules.get((path, line), rule_of(code)),
                "code": code,
                "reason": REFUSALS[code] + refusals.about(left),
                "path": path,
                "line": line,
                "function": function,
                "processes": [0],
            }
            for left in refusals.left()
            for code, path, line, function in [left]
        ],
    }
    mark(report["modules"], report["traced"])
    return report


def ranks_of_process() -> dict[str, int | None]:
    """Rank, local rank and world size as the launcher of this process tells them, None where it does not."""
    return {
        key: next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), None)
        for key, names in _RANKS.items()
    }


def host_name() -> str:
    """The name of this machine; asked of the system itself, because an import at exit may find a file of the user's."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
