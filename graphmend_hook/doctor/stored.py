"""Checks of the cache: where it is, whether it is used, and what it holds."""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping
from typing import Any

from ..config import Settings
from ..hook.cache import Cache
from ..reporting.text import counted
from ..rewrite import active_rules
from .findings import Finding, Level


def check_cache(settings: Settings, seen: Mapping[str, Any] | None) -> list[Finding]:
    """The cache that a process with `settings` uses; seen: what was observed of a program, for its hits."""
    cache = Cache(settings.cache_dir, active_rules(settings.rules))
    directory = cache.directory
    remedy = "unset PYTHONDONTWRITEBYTECODE where programs run, or fill the cache without it"
    if directory is None and sys.dont_write_bytecode and not cache.distrusted:
        return [Finding("cache", Level.WARNING, "there is none, and python was told to write none", remedy)]
    if directory is None:
        return [Finding("cache", Level.PROBLEM, cache.problem, "every process rewrites every module anew until then")]
    root = directory.parent
    sizes = [file.stat().st_size for file in root.glob("*/*.gmc")]
    current = len(list(directory.glob("*.gmc")))
    rights = stat.S_IMODE(root.stat().st_mode)
    text = f"{root}: {counted(len(sizes), 'entry')}, {sum(sizes) / 1e6:.1f} MB, {current} of them for these settings"
    details = {"directory": str(root), "entries": len(sizes), "bytes": sum(sizes), "current": current}
    details["rights"] = f"{rights:o}"
    text += f"; rights {rights:o}"
    if seen is not None and seen["report"] is not None:
        process = seen["report"]["processes"][0]
        details |= {"hits": process["hits"], "misses": process["misses"]}
        text += f"; {counted(process['hits'], 'hit')} and {counted(process['misses'], 'miss')} in this program"
    if sys.dont_write_bytecode:
        return [Finding("cache", Level.WARNING, f"nothing is written to it; {text}", remedy, details)]
    return [Finding("cache", Level.OK, text, details=details)]
