"""What happened to each module in this process: the record behind reports and strict mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..diagnostics import Outcome, Site


class Status(Enum):
    """What became of an allowlisted module."""

    MENDED = "mended"
    UNCHANGED = "unchanged"  # nothing to mend, or every site declined
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

    def as_tuple(self) -> tuple[Any, ...]:
        """A form that another process can be sent."""
        sites = tuple(site.as_tuple() for site in self.sites)
        return (self.name, self.path, self.status.value, sites, self.cached, self.seconds, self.why)

    @classmethod
    def from_tuple(cls, fields: tuple[Any, ...]) -> ModuleRecord:
        name, path, status, sites, *rest = fields
        return cls(name, path, Status(status), tuple(Site.from_tuple(site) for site in sites), *rest)


@dataclass
class Ledger:
    """Records by module name; the last one counts, as after a reload."""

    modules: dict[str, ModuleRecord] = field(default_factory=dict)

    def add(self, record: ModuleRecord) -> None:
        self.modules[record.name] = record

    @property
    def records(self) -> list[ModuleRecord]:
        """A copy, because other threads may be importing."""
        return list(self.modules.values())

    def with_status(self, status: Status) -> list[ModuleRecord]:
        return [record for record in self.records if record.status is status]

    @property
    def sites(self) -> list[tuple[ModuleRecord, Site]]:
        return [(record, site) for record in self.records for site in record.sites]

    def counts(self) -> Counter[tuple[str, str]]:
        """Sites by (rule, outcome), declined ones by (rule, code)."""
        return Counter((site.rule, "mended" if site.outcome is Outcome.MENDED else site.code) for _, site in self.sites)


ledger = Ledger()
