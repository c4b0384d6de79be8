"""The report of this process as a document: what JSON files hold, and what the table is drawn from.

`schema.json` beside this file says what stands in it, and docs/report.md what it means.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ..dynamo import refusals, trust
from ..rules.codes import REFUSALS, RULE_OF_CODE
from ..version import __version__
from .ledger import HookRecord, Ledger, ModuleRecord

Document = dict[str, Any]
SCHEMA = 1  # raised when a field goes away or changes its meaning, not when one is added
# What launchers say about a process: torchrun and its kin, then Slurm's srun.
_RANK = ("RANK", "SLURM_PROCID")
_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID")
_WORLD_SIZE = ("WORLD_SIZE", "SLURM_NTASKS")


def as_json(ledger: Ledger) -> Document:
    """Everything in `ledger`, with the facts about this process, as of now."""
    records = ledger.records
    return {
        "schema": SCHEMA,
        "version": __version__,
        "processes": [_process(ledger, records)],
        "modules": [_module(record) for record in records],
        "traced": _traced(records),
    }


def rank_of(env: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    """Rank, local rank and world size as the launcher of this process put them into `env`, None where it did not."""
    return _number(env, _RANK), _number(env, _LOCAL_RANK), _number(env, _WORLD_SIZE)


def host_name() -> str:
    """The name of this machine; asked of the system itself, because an import at exit may find a file of the user's."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _process(ledger: Ledger, records: list[ModuleRecord]) -> Document:
    rank, local_rank, world_size = rank_of(os.environ)
    torch = getattr(sys.modules.get("torch"), "__version__", None)
    return {
        "pid": os.getpid(),
        "host": host_name(),
        "rank": rank,
        "local_rank": local_rank,
        "world_size": world_size,
        "argv": list(sys.orig_argv),
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": None if torch is None else str(torch),
        "started": _utc(ledger.started),
        "ended": _utc(time.time()),
        "not_relied_on": [mechanism.value for mechanism in trust.Mechanism if mechanism in trust.failed],
        "hooks": [_hook(record) for record in ledger.hooks],
        "hits": sum(record.cached is True for record in records),
        "misses": sum(record.cached is False for record in records),
        "seconds": round(sum(record.seconds for record in records), 6),
    }


def _hook(record: HookRecord) -> Document:
    directory = None if record.cache_directory is None else str(record.cache_directory)
    return {**record.settings.as_json(), "cache_directory": directory}


def _module(record: ModuleRecord) -> Document:
    return {
        **vars(record),
        "status": record.status.value,
        "sites": [{**site._asdict(), "outcome": site.outcome.value} for site in record.sites],
        "seconds": round(record.seconds, 6),
        "processes": [0],
    }


def _traced(records: Iterable[ModuleRecord]) -> list[Document]:
    rules = {(record.path, site.line): site.rule for record in records for site in record.sites if not site.code}
    return [
        {
            "rule": rules.get((path, line), RULE_OF_CODE.get(code.partition("-")[0], "")),
            "code": code,
            "reason": REFUSALS[code],
            "path": path,
            "line": line,
            "function": function,
            "processes": [0],
        }
        for code, path, line, function in list(refusals.seen)
    ]


def _number(env: Mapping[str, str], names: Iterable[str]) -> int | None:
    return next((int(env[name]) for name in names if env.get(name, "").isdecimal()), None)


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
