"""``graphmend cache info|clear|prune|warm``: look at the cache, empty it, keep it small, or fill it ahead of time."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter, time

import rich.filesize
import rich.progress
from rich.console import Console

from ...diagnostics import ConfigError, GraphmendError
from ...hook.cache import fingerprint
from ...hook.entries import take_stock
from ...hook.locate import modules
from ...hook.warm import warm
from ...rewrite import active_rules
from ...settings.config import Kind, Settings, settings_of_kind
from ...settings.options import add_settings, settings_of
from ...settings.syntax import split_list
from ..report.ledger import Status
from ..report.text import PLAIN, counted

HELP = "look at the cache of mended modules, empty it or fill it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    info = actions.add_parser("info", help="where it is, what it holds, and whether it can be used")
    clear = actions.add_parser("clear", help="delete its entries, and nothing else")
    clear.add_argument("--stale", action="store_true", help="only those of another version, python or choice of rules")
    prune = actions.add_parser("prune", help="delete entries that are old, or more than there is room for")
    prune.add_argument("--max-age", metavar="DAYS", help="delete what was neither written nor read for so many days")
    prune.add_argument("--max-size", metavar="MB", help="delete what was not used for longest, down to this")
    fill = actions.add_parser("warm", help="mend modules ahead of time, without importing them")
    fill.add_argument("patterns", metavar="MODULES", nargs="*", help="what to mend (default: GRAPHMEND_MODULES)")
    fill.add_argument("--jobs", metavar="N", type=int, help="processes to use (default: one for each CPU)")
    for action in (info, clear, prune):
        add_settings(action, settings_of_kind(Kind.REWRITING, Kind.STORAGE))
    modules = settings_of_kind(Kind.MODULES, Kind.REWRITING, Kind.STORAGE)
    add_settings(fill, [setting for setting in modules if setting.name != "modules"])  # MODULES is what that would be


def run(options: argparse.Namespace) -> int:
    """Returns 1 for a cache that cannot be used (info) or a module that cannot be mended (warm), else 0."""
    actions = {"info": _info, "clear": _clear, "prune": _prune, "warm": _warm}
    return actions[options.action](options, settings_of(options))


def _info(_options: argparse.Namespace, settings: Settings) -> int:
    root, entries, problem = take_stock(settings.cache_dir)
    own = fingerprint(active_rules(settings.rules))
    current = [size for file, size in entries.items() if file.parent.name == own]
    stale = [size for file, size in entries.items() if file.parent.name != own]
    console = Console(**PLAIN, soft_wrap=True)
    for label, value in (
        ("directory", str(root or "none")),
        ("fingerprint", f"{own} (rules: {', '.join(settings.rules) or 'none'})"),
        ("current", _amount(current)),
        ("stale", f"{_amount(stale)} (another version, python or choice of rules)"),
    ):
        console.print(f"{label:<12} {value}")
    if problem:
        console.print(problem, style="red")
    return 1 if problem else 0


def _clear(options: argparse.Namespace, settings: Settings) -> int:
    root, entries, problem = take_stock(settings.cache_dir)
    if problem:
        raise GraphmendError(problem)
    kept = fingerprint(active_rules(settings.rules)) if options.stale else ""
    _delete([file for file in entries if file.parent.name != kept], entries, root)
    return 0


def _prune(options: argparse.Namespace, settings: Settings) -> int:
    age, size = _number(options.max_age, "--max-age"), _number(options.max_size, "--max-size")
    if age is None and size is None:
        raise ConfigError("say what may stay: --max-age DAYS, --max-size MB, or both")
    root, entries, problem = take_stock(settings.cache_dir)
    if problem:
        raise GraphmendError(problem)
    states = {file: file.stat() for file in entries if file.exists()}
    used = {file: max(state.st_atime, state.st_mtime) for file, state in states.items()}
    now, left, doomed = time(), 0.0, []
    for file in sorted(used, key=used.__getitem__, reverse=True):
        left += entries[file]
        if (age is not None and now - used[file] > age * 86400) or (size is not None and left > size * 1e6):
            doomed.append(file)
    _delete(doomed, entries, root)
    return 0


def _number(text: str | None, option: str) -> float | None:
    """The number in `text`, None for none.  Raises ConfigError unless it is finite and at least 0."""
    try:
        number = None if text is None else float(text)
    except ValueError:
        number = -1.0
    if number is not None and not 0 <= number < float("inf"):
        raise ConfigError(f"{option}: {text!r} is not a number of 0 or more")
    return number


def _delete(doomed: list[Path], entries: dict[Path, int], root: Path | None) -> None:
    try:
        for file in doomed:
            file.unlink(missing_ok=True)  # another process may be at it too
            with contextlib.suppress(OSError):  # not empty yet
                file.parent.rmdir()
    except OSError as error:
        raise GraphmendError(f"cannot delete {error.filename}: {error.strerror}") from None
    print(f"deleted {_amount([entries[file] for file in doomed])} in {root}")


def _warm(options: argparse.Namespace, settings: Settings) -> int:
    patterns = [item for text in options.patterns for item in split_list(text)] or list(settings.modules)
    if not patterns:
        raise ConfigError("name the modules to mend, or set GRAPHMEND_MODULES")
    if options.jobs is not None and options.jobs < 1:
        raise ConfigError(f"--jobs: {options.jobs} processes cannot work; use 1 or more")
    logging.getLogger("graphmend_hook").setLevel(logging.ERROR)  # what there is to say is said here
    os.environ.pop("GRAPHMEND_MODULES", None)  # or the worker processes would install a hook
    start = perf_counter()
    found = modules(patterns, settings.deny)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    progress = rich.progress.track(
        warm(found, settings, options.jobs or cpus or 1),
        "mending",
        total=len(found),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    warmed = list(progress)
    counts = Counter(module.status for module in warmed)
    cached = sum(module.cached is True for module in warmed)
    failed = [module for module in warmed if module.status is Status.FAILED]
    for module in failed:
        print(f"failed: {module.name} ({module.path}): {module.why}", file=sys.stderr)
    print(
        f"{len(warmed)} modules: {counts[Status.MENDED]} mended, {counts[Status.UNCHANGED]} unchanged, "
        f"{len(failed)} failed; {cached} of them were in the cache; {perf_counter() - start:.1f} s"
    )
    return 1 if failed else 0


def _amount(sizes: list[int]) -> str:
    return f"{counted(len(sizes), 'entry')}, {rich.filesize.decimal(sum(sizes))}"
