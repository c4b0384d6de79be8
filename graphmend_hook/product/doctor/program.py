"""Runs a program as python would, watches its imports, and says what became of the hook in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...hook.allowlist import Allowlist
from ...hook.reach.children import BOOTSTRAP
from ...settings.syntax import UNMENDABLE
from ..report.text import counted, shorten
from . import Finding, Level

_PROBE = str(Path(__file__).parent / "probe")
_OURS = "MendingFinder"
_PLACES = 3
_OF_PYTHON = {"sitecustomize", "usercustomize"}
_UNSEEN = "python itself or a .pth file"  # before any sitecustomize, so before the probe
_NO_PROGRAM = ("-c", "import graphmend_hook")
_HOW = (
    "run it by python -m graphmend_hook, or import graphmend_hook in its first line with GRAPHMEND_MODULES set, or set "
    f"PYTHONPATH={BOOTSTRAP} too"
)


def watch(program: Sequence[str], env: Mapping[str, str]) -> tuple[int, dict[str, Any] | None]:
    """Run ``python *program`` with `env`: its status and what the probe saw, None if it ended without exit functions.

    Without a program, one that imports graphmend_hook and nothing else.  What a program prints goes to stderr.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "seen.json")
        path = env.get("PYTHONPATH")
        child = {
            **env,
            "PYTHONPATH": os.pathsep.join([_PROBE, *([path] if path else [])]),
            "_GRAPHMEND_PROBE": json.dumps({"out": out, "path": path}),
        }
        command = [sys.executable, *(program or _NO_PROGRAM)]
        errors = None if program else subprocess.DEVNULL
        done = subprocess.run(command, env=child, stdout=2, stderr=errors, check=False)
        try:
            seen: dict[str, Any] = json.loads(Path(out).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return done.returncode, None
        return done.returncode, seen


def check_program(program: Sequence[str], status: int, seen: Mapping[str, Any] | None) -> Iterator[Finding]:
    """What `watch` tells of the hook, of the finders and of the modules in the allowlist."""
    if status != 0 and program:
        text = f"the program ended with status {status}"
        yield Finding("program", Level.WARNING, text, "what follows is true up to there")
    if seen is None:
        text = "nothing is known of the program: it ended without its exit functions, or python did not start"
        yield Finding("program", Level.PROBLEM, text, "let it end by itself, not by os._exit or a signal")
        return
    yield _hook(program, seen)
    yield _finders(seen)
    report = seen["report"]
    if report is not None:
        yield from _too_early(report, seen)
        yield from _not_eligible(report, seen)
        yield from _failed(report)
        if program:
            yield _mended(report, seen)


def _hook(program: Sequence[str], seen: Mapping[str, Any]) -> Finding:
    if _OURS in seen["at_start"]:
        return Finding("hook", Level.OK, "on from the start of every python here, by sitecustomize")
    if seen["report"] is not None:
        return Finding("hook", Level.OK, "on" if program else "on from where a program imports graphmend_hook")
    only = "a program that only imports graphmend_hook has no hook"
    text = "the program never installed the hook" if program else only
    return Finding("hook", Level.PROBLEM, text, _HOW)


def _finders(seen: Mapping[str, Any]) -> Finding:
    names = seen["finders"]
    text = ", ".join(names)
    if _OURS not in names[1:]:
        return Finding("finders", Level.OK, text, details={"finders": names})
    before = ", ".join(dict.fromkeys(names[: names.index(_OURS)]))
    remedy = f"install the hook after {before}; what they find first is not mended"
    return Finding("finders", Level.WARNING, f"others are asked before ours: {text}", remedy, {"finders": names})


def _with_status(report: Mapping[str, Any], status: str) -> list[Any]:
    return [module for module in report["modules"] if module["status"] == status]


def _too_early(report: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[Finding]:
    """The modules that were there before the hook, by the place that asked for them."""
    names = [module["name"] for module in _with_status(report, "imported too early")]
    if not names:
        return
    if names == ["__main__"]:
        text = "the program itself, which python -m loads without asking a hook"
        yield Finding("imported too early", Level.WARNING, text, "run it by python -m graphmend_hook")
        return
    importers = seen["importers"]
    order = {name: number for number, name in enumerate(importers)}
    by_place: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        importer = importers.get(name)
        place = "{}:{} in {}".format(shorten(importer[0]), *importer[1:]) if importer else _UNSEEN
        by_place.setdefault(place, []).append(name)
    shown = [f"{_some(some)} by {place}" for place, some in by_place.items()]
    text = f"{counted(len(names), 'module')} imported before the hook was installed: {_some(shown, '; ')}"
    first = next((place for place in by_place if place != _UNSEEN), "that")
    remedy = f"install the hook before {first}, or run the program by python -m graphmend_hook"
    yield Finding("imported too early", Level.PROBLEM, text, remedy, {"importers": by_place})


def _not_eligible(report: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[Finding]:
    by_reason: dict[str, list[str]] = {}
    for module in _with_status(report, "not eligible"):
        by_reason.setdefault(module["why"], []).append(module["name"])
    for why, names in by_reason.items():
        yield Finding("not eligible", Level.WARNING, f"{_some(names)}: {why}", _remedy(why), {"modules": names})
    lists = [Allowlist(hook["modules"], hook["deny"]) for hook in report["processes"][0]["hooks"]]
    namespaces = [
        name
        for name, (loader, origin) in seen["modules"].items()
        if "NamespaceLoader" in loader and origin is None and any(allowed.covers(name, name) for allowed in lists)
    ]
    if namespaces:
        text = f"{_some(namespaces)}: a namespace package has no code of its own"
        yield Finding("not eligible", Level.OK, text, details={"modules": namespaces})


def _remedy(why: str) -> str:
    if "ExtensionFileLoader" in why:
        return "compiled code cannot be mended; GRAPHMEND_DENY takes the module off the list"
    if "SourcelessFileLoader" in why:
        return "install the library with its sources"
    if "zipimport" in why:
        return "unpack the archive"
    if "graphmend_hook" in why:  # it says what to do
        return ""
    return "another import hook loads it; leave the module out of that one, or mend it by graphmend_hook.mend(module)"


def _failed(report: Mapping[str, Any]) -> Iterator[Finding]:
    modules = _with_status(report, "failed")
    if modules:
        why = "; ".join(f"{module['name']}: {module['why']}" for module in modules[:_PLACES])
        remedy = f"please report this; GRAPHMEND_DENY={','.join(module['name'] for module in modules)} silences it"
        yield Finding("failed", Level.PROBLEM, f"an error of ours kept them from being mended: {why}", remedy)


def _mended(report: Mapping[str, Any], seen: Mapping[str, Any]) -> Finding:
    modules, mended = report["modules"], _with_status(report, "mended")
    sites = sum(site["outcome"] == "mended" for module in mended for site in module["sites"])
    process = report["processes"][0]
    cache = {"hits": process["hits"], "misses": process["misses"]}
    if mended:
        text = f"{counted(sites, 'site')} in {len(mended)} of {counted(len(modules), 'module')}"
        return Finding("mended", Level.OK, text, details={**cache, "modules": [module["name"] for module in mended]})
    patterns = ",".join(pattern for hook in process["hooks"] for pattern in hook["modules"])
    if modules and not any(module["status"] == "unchanged" for module in modules):
        text = f"nothing: none of {counted(len(modules), 'module')} could be mended"
        return Finding("mended", Level.PROBLEM, text, "see the reasons above", cache)
    if modules:
        text = f"nothing: {counted(len(modules), 'module')} matched {patterns!r}, without a site that could be mended"
        return Finding("mended", Level.WARNING, text, "run with --report to see what was declined", cache)
    tops = {name.partition(".")[0] for name in seen["modules"]} - UNMENDABLE - _OF_PYTHON
    others = _some(sorted(top for top in tops if not top.startswith("_")), most=10) or "none"
    text = f"nothing: no module matched {patterns!r}; imported were {others}"
    remedy = "name those that run inside torch.compile in GRAPHMEND_MODULES"
    return Finding("mended", Level.PROBLEM, text, remedy, cache)


def _some(names: Sequence[str], between: str = ", ", most: int = _PLACES) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more
