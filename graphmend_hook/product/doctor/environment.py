"""Checks of what stands around a program: versions, settings, what runs when python starts, the cache, and torch."""

from __future__ import annotations

import difflib
import filecmp
import json
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...diagnostics import ConfigError
from ...hook.cache import Cache
from ...hook.entries import take_stock
from ...hook.reach.children import BOOTSTRAP
from ...rewrite import active_rules
from ...settings.config import SETTINGS, Settings
from ...version import __version__
from ..report.text import counted
from . import Finding, Level

_HERE = Path(__file__).parent
_LIMIT = 300  # seconds of the self-test
_PACKAGES = ("torch", "transformers", "bytecode")
_OLDEST_TORCH = (2, 7)
_TESTED_TORCH = ((2, 12), (2, 15))
# Runs everything that `site` does at the start of python, but for the two modules themselves, and finds these.
_FIND_CUSTOMS = """
import json, os, site, sys
site.execsitecustomize = site.execusercustomize = lambda: None
site.main()
names = ("sitecustomize", "usercustomize")
found = {name: [os.path.join(place, name + ".py") for place in dict.fromkeys(sys.path)] for name in names}
print(json.dumps({name: [path for path in paths if os.path.isfile(path)] for name, paths in found.items()}))
"""


def check_versions() -> Finding:
    """The versions as the installed distributions give them: nothing is imported for it."""
    found = {name: _version(name) for name in _PACKAGES}
    python = ".".join(map(str, sys.version_info[:3]))
    shown = ", ".join(f"{name} {version or 'is not installed'}" for name, version in found.items())
    text = f"python {python} ({sys.executable}), {platform.platform()}; graphmend_hook {__version__}, {shown}"
    details = {"python": python, "executable": sys.executable, "platform": platform.platform()}
    details |= {"graphmend_hook": __version__, "package": str(_HERE.parents[1])}
    level, remedy = _judge_versions(found)
    return Finding("versions", level, text, remedy, details | found)


def _version(name: str) -> str | None:
    return next((found.version for found in metadata.distributions(name=name)), None)


def _judge_versions(found: Mapping[str, str | None]) -> tuple[Level, str]:
    if found["bytecode"] is None:
        return Level.PROBLEM, "graphmend_hook needs bytecode: python -m pip install bytecode"
    torch = found["torch"]
    if torch is None:
        return (
            Level.WARNING,
            'nothing can be compiled without torch; pip install "graphmend_hook[demo]"',
        )
    release = tuple(map(int, re.findall(r"\d+", torch)[:2]))
    if release < _OLDEST_TORCH:
        return Level.PROBLEM, "graphmend_hook needs torch {}.{} or newer".format(*_OLDEST_TORCH)
    first, last = _TESTED_TORCH
    if not first <= release <= last:
        tested = "tested with torch {}.{} to {}.{}".format(*first, *last)
        return Level.WARNING, f"{tested}; with another, what does not work is found at the first trace (GM011)"
    return Level.OK, ""


def check_settings(env: Mapping[str, str]) -> tuple[list[Finding], Settings | None]:
    """What the ``GRAPHMEND_*`` variables in `env` say; None where no process could use them."""
    known = {setting.variable() for setting in SETTINGS}
    given = {name: value for name, value in sorted(env.items()) if name.startswith("GRAPHMEND_")}
    findings = [_unknown(name, known) for name in given if name not in known]
    try:
        settings = Settings.from_env({name: value for name, value in given.items() if name in known})
    except ConfigError as error:
        return [*findings, Finding("settings", Level.PROBLEM, str(error), "correct it, or unset it")], None
    shown = ", ".join(f"{name}={value}" for name, value in given.items() if value) or "no GRAPHMEND_* variable is set"
    level, text, remedy = _judge_settings(settings)
    findings.append(Finding("settings", level, "; ".join(filter(None, (text, shown))), remedy, {"variables": given}))
    return findings, settings if settings.disable or len(findings) == 1 else None


def _unknown(name: str, known: set[str]) -> Finding:
    words = sorted(setting.removeprefix("GRAPHMEND_") for setting in known)
    like = difflib.get_close_matches(name.removeprefix("GRAPHMEND_"), words, 1)
    remedy = f"did you mean GRAPHMEND_{like[0]}?" if like else f"unset it; the settings are {', '.join(sorted(known))}"
    return Finding("settings", Level.PROBLEM, f"{name} is not a setting, and keeps the hook from starting", remedy)


def _judge_settings(settings: Settings) -> tuple[Level, str, str]:
    if settings.disable:
        return Level.PROBLEM, "the hook is switched off", "unset GRAPHMEND_DISABLE"
    if not settings.rules:
        return Level.PROBLEM, "no rule may mend anything", "unset GRAPHMEND_RULES"
    if not settings.modules:
        text = "GRAPHMEND_MODULES is not set, so that `import graphmend_hook` alone mends nothing"
        remedy = "set it (GRAPHMEND_MODULES=transformers), call graphmend_hook.install, or run python -m graphmend_hook"
        return Level.WARNING, text, remedy
    return Level.OK, "", ""


def check_startup(env: Mapping[str, str]) -> Finding:
    """Which sitecustomize and usercustomize python finds with `env`, and whether ours is the one that runs."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _FIND_CUSTOMS], env=dict(env), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        text = f"python does not start here: {done.stderr.strip().splitlines()[-1:]}"
        return Finding("start-up", Level.PROBLEM, text, "see what `python -S -c 'import site; site.main()'` says")
    found: dict[str, list[str]] = json.loads(done.stdout)
    sites = found["sitecustomize"]
    ours = [bool(filecmp.cmpfiles(Path(path).parent, BOOTSTRAP, ["sitecustomize.py"], False)[0]) for path in sites]
    shown = [f"{path} (ours)" if own else path for path, own in zip(sites, ours, strict=True)]
    text = f"sitecustomize: {', then '.join(shown) or 'none'}"
    text += f"; usercustomize: {', '.join(found['usercustomize'][:1]) or 'none'}"
    if any(ours) and not ours[0]:
        remedy = f"put it first: PYTHONPATH={Path(sites[ours.index(True)]).parent}:$PYTHONPATH"
        text = f"python runs another sitecustomize than ours; {text}"
        return Finding("start-up", Level.WARNING, text, remedy, found)
    if not ours or not ours[0]:
        text += "; without ours, the hook is on where a program imports it or is run by python -m graphmend_hook"
    return Finding("start-up", Level.OK, text, details=found)


def check_cache(settings: Settings, seen: Mapping[str, Any] | None) -> Finding:
    """The cache that a process with `settings` uses; seen: what was observed of a program, for its hits."""
    cache = Cache(settings.cache_dir, active_rules(settings.rules))
    remedy = "unset PYTHONDONTWRITEBYTECODE where programs run, or fill the cache without it"
    if cache.directory is None and sys.dont_write_bytecode and not cache.distrusted:
        return Finding("cache", Level.WARNING, "there is none, and python was told to write none", remedy)
    if cache.directory is None:
        return Finding("cache", Level.PROBLEM, cache.problem, "every process rewrites every module anew until then")
    root, entries = cache.directory.parent, take_stock(settings.cache_dir)[1]
    size = sum(entries.values())
    current = sum(file.parent == cache.directory for file in entries)
    rights = f"{stat.S_IMODE(root.stat().st_mode):o}"
    details = {"directory": str(root), "entries": len(entries), "bytes": size, "current": current, "rights": rights}
    text = f"{root}: {counted(len(entries), 'entry')}, {size / 1e6:.1f} MB, {current} of them for these settings"
    text += f"; rights {rights}"
    if seen is not None and seen["report"] is not None:
        process = seen["report"]["processes"][0]
        details |= {"hits": process["hits"], "misses": process["misses"]}
        text += f"; {counted(process['hits'], 'hit')} and {counted(process['misses'], 'miss')} in this program"
    if sys.dont_write_bytecode:
        return Finding("cache", Level.WARNING, f"nothing is written to it; {text}", remedy, details)
    return Finding("cache", Level.OK, text, details=details)


def check_self(env: Mapping[str, str]) -> Iterator[Finding]:
    """The self-test: mend and compile a log line, a guard and a branch in a process of its own; what the probes say.

    It has an empty cache, and no setting that is in `env`.
    """
    if find_spec("torch") is None:
        yield Finding("self-test", Level.SKIPPED, "torch is not installed here, so nothing can be compiled")
        return
    found, probes = _self_test({key: value for key, value in env.items() if not key.startswith("GRAPHMEND_")})
    remedy = "please report this, with the output of `graphmend doctor --json`"
    if probes:
        failed = [mechanism for mechanism, works in probes.items() if not works]
        text = f"all {len(probes)} work on this torch"
        if failed:
            text = f"{counted(len(failed), 'probe')} of {len(probes)} failed on this torch: {'; '.join(failed)}"
        level = Level.PROBLEM if failed else Level.OK
        yield Finding("probes", level, text, remedy if failed else "", {"probes": probes})
    if found:
        yield Finding("self-test", Level.PROBLEM, "; ".join(found), remedy, {"failures": found})
    else:
        text = "a log line, a guard and a branch: one graph; results, records and exception as in eager"
        yield Finding("self-test", Level.OK, text)


def _self_test(env: dict[str, str]) -> tuple[list[str], dict[str, bool]]:
    """What failed, in words, and of each mechanism that rests on torch's internals whether it works."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_HERE / "selftest_module.py", f"{folder}/graphmend_selftest.py")
        program = shutil.copy(_HERE / "selftest_program.py", folder)
        env["GRAPHMEND_CACHE_DIR"] = f"{folder}/cache"
        command = [sys.executable, program]
        try:
            done = subprocess.run(
                command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT
            )
        except subprocess.TimeoutExpired:
            return [f"it took more than {_LIMIT} s"], {}
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            words = done.stderr.strip().splitlines()
            return [f"it ended with status {done.returncode}: {words[-1] if words else ''}"], {}
        seen = json.loads(lines[-1])
        return seen["failures"], seen["probes"]
