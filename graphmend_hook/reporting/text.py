"""The report as text, for a person, and as a JSON-ready dict, for a machine."""

from __future__ import annotations

import os
from typing import Any

from ..diagnostics import Outcome
from ..runtime import refusals
from ..version import __version__
from .ledger import Ledger, ModuleRecord, Status

SCHEMA = 1


def as_text(ledger: Ledger) -> str:
    """A few lines: modules by status, sites by rule, declined sites by code with one example each."""
    lines = [f"graphmend_hook {__version__}, process {os.getpid()}"]
    for status in Status:
        records = ledger.with_status(status)
        if records:
            lines.append(f"  modules {status.value}: {len(records)}{_cache_note(records)}")
    seen: set[str] = set()
    counts = ledger.counts()
    for record, site in ledger.sites:
        mended = site.outcome is Outcome.MENDED
        key = site.rule if mended else site.code
        if key in seen:
            continue
        seen.add(key)
        if mended:
            lines.append(f"  sites mended by {site.rule}: {counts[site.rule, 'mended']}")
        else:
            lines.append(f"  declined {site.code}: {counts[site.rule, site.code]}, {site.reason}")
            lines.append(f"    for example {record.path}:{site.line} in {site.function}")
    for code, places in _traced().items():
        lines.append(f"  left in place while tracing {code}: {len(places)}, {refusals.REFUSALS[code]}")
        lines.append("    for example {}:{} in {}".format(*places[0]))
    unmended = ledger.with_status(Status.NOT_ELIGIBLE) + ledger.with_status(Status.FAILED)
    lines.extend(f"  {record.name}: {record.why}" for record in unmended)
    return "\n".join(lines)


def as_json(ledger: Ledger) -> dict[str, Any]:
    """The whole ledger.  ``schema`` changes with the meaning of any field."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "pid": os.getpid(),
        "modules": [
            {
                "name": record.name,
                "path": record.path,
                "status": record.status.value,
                "cached": record.cached,
                "seconds": round(record.seconds, 6),
                "why": record.why,
                "sites": [dict(zip(_SITE_FIELDS, site.as_tuple(), strict=True)) for site in record.sites],
            }
            for record in ledger.records
        ],
        "traced": [
            {"code": code, "path": path, "line": line, "function": function, "reason": refusals.REFUSALS[code]}
            for code, path, line, function in refusals.seen
        ],
    }


def _traced() -> dict[str, list[tuple[str, int, str]]]:
    """Places where an effect was left while tracing, by the code of the reason."""
    places: dict[str, list[tuple[str, int, str]]] = {}
    for code, path, line, function in refusals.seen:
        places.setdefault(code, []).append((path, line, function))
    return places


_SITE_FIELDS = ("rule", "function", "line", "outcome", "code", "reason")


def _cache_note(records: list[ModuleRecord]) -> str:
    hits = sum(record.cached is True for record in records)
    misses = sum(record.cached is False for record in records)
    seconds = sum(record.seconds for record in records)
    return f" ({hits} from the cache, {misses} not; {seconds:.2f} s)" if hits + misses else ""
