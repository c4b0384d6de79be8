"""What happened to each module in this process: the record behind reports and strict mode."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ..config import Settings
from ..diagnostics import Site


class Status(Enum):
    """What became of an allowlisted module."""

    MENDED = "mended"
    UNCHANGED = "unchanged"  # nothing to mend, or every site declined
    PASSED_OVER = "passed over"  # no compiled function reaches it (`hook.allowlist`)
    NOT_ELIGIBLE = "not eligible"  # not loaded from a plain source file
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
    """One hook that was installed.  cache_directory: where its entries live, None where no directory can be used."""

    settings: Settings
    cache_directory: Path | None


@dataclass
class Ledger:
    """Records by module name; the last one counts, as after a reload.

    started: when the hook's work began in this process, in seconds since the epoch.
    """

    modules: dict[str, ModuleRecord] = field(default_factory=dict)
    hooks: list[HookRecord] = field(default_factory=list)
    started: float = field(default_factory=time.time)

    def add(self, record: ModuleRecord) -> None:
        self.modules[record.name] = record

    @property
    def records(self) -> list[ModuleRecord]:
        """A copy, because other threads may be importing."""
        return list(self.modules.values())

    def with_status(self, status: Status) -> list[ModuleRecord]:
        return [record for record in self.records if record.status is status]


ledger = Ledger()
