"""``graphmend cache info|clear|warm``: look at the cache, empty it, or fill it ahead of time (for an image, say)."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from time import perf_counter

import rich.filesize
import rich.progress
from rich.console import Console

from ..config import Kind, Settings, settings_of_kind
from ..diagnostics import ConfigError
from ..hook.cache import fingerprint
from ..hook.entries import Entry, delete, take_stock
from ..hook.locate import modules
from ..hook.warm import CacheError, warm
from ..options import add_settings, settings_of
from ..parsing import split_list
from ..reporting.ledger import ModuleRecord, Status
from ..reporting.text import PLAIN, counted
from ..rewrite import active_rules

HELP = "look at the cache of mended modules, empty it or fill it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    info = actions.add_parser("info", help="where it is, what it holds, and whether it can be used")
    clear = actions.add_parser("clear", help="delete its entries, and nothing else")
    clear.add_argument("--stale", action="store_true", help="only those of another version, python or choice of rules")
    fill = actions.add_parser("warm", help="mend modules ahead of time, without importing them")
    fill.add_argument("patterns", metavar="MODULES", nargs="*", help="what to mend (default: GRAPHMEND_MODULES)")
    fill.add_argument("--jobs", metavar="N", type=int, help="processes to use (default: one for each CPU)")
    for action in (info, clear):
        add_settings(action, settings_of_kind(Kind.REWRITING, Kind.STORAGE))
    modules = settings_of_kind(Kind.MODULES, Kind.REWRITING, Kind.STORAGE)
    add_settings(fill, [setting for setting in modules if setting.name != "modules"])  # MODULES is what that would be


def run(options: argparse.Namespace) -> int:
    """Do what `options.action` says.

    Returns 1 for a cache that cannot be used (info) or a module that cannot be mended (warm), else 0.
    """
    actions: dict[str, Callable[[argparse.Namespace, Settings], int]] = {"info": _info, "clear": _clear, "warm": _warm}
    return actions[options.action](options, settings_of(options))


def _info(_options: argparse.Namespace, settings: Settings) -> int:
    stock = take_stock(settings.cache_dir)
    own = _fingerprint(settings)
    current = [entry for entry in stock.entries if entry.fingerprint == own]
    stale = [entry for entry in stock.entries if entry.fingerprint != own]
    console = Console(**PLAIN, soft_wrap=True)
    for label, value in (
        ("directory", str(stock.root or "none")),
        ("fingerprint", f"{own} (rules: {', '.join(settings.rules) or 'none'})"),
        ("current", _amount(current)),
        ("stale", f"{_amount(stale)} (another version, python or choice of rules)"),
    ):
        console.print(f"{label:<12} {value}")
    if stock.problem:
        console.print(stock.problem, style="red")
    return 1 if stock.problem else 0


def _clear(options: argparse.Namespace, settings: Settings) -> int:
    stock = take_stock(settings.cache_dir)
    if stock.problem:
        raise CacheError(stock.problem)
    own = _fingerprint(settings)
    doomed = [entry for entry in stock.entries if not (options.stale and entry.fingerprint == own)]
    try:
        for entry in doomed:
            delete(entry)
    except OSError as error:
        raise CacheError(f"cannot delete {error.filename}: {error.strerror}") from None
    print(f"deleted {_amount(doomed)} in {stock.root}")
    return 0


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
    progress = rich.progress.track(
        warm(found, settings, options.jobs or _cpus()),
        "mending",
        total=len(found),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    return _summary(list(progress), perf_counter() - start)


def _summary(warmed: list[ModuleRecord], seconds: float) -> int:
    counts = Counter(module.status for module in warmed)
    cached = sum(module.cached is True for module in warmed)
    failed = [module for module in warmed if module.status is Status.FAILED]
    for module in failed:
        print(f"failed: {module.name} ({module.path}): {module.why}", file=sys.stderr)
    print(
        f"{len(warmed)} modules: {counts[Status.MENDED]} mended, {counts[Status.UNCHANGED]} unchanged, "
        f"{len(failed)} failed; {cached} of them were in the cache; {seconds:.1f} s"
    )
    return 1 if failed else 0


def _fingerprint(settings: Settings) -> str:
    return fingerprint(active_rules(settings.rules))


def _amount(entries: list[Entry]) -> str:
    return f"{counted(len(entries), 'entry')}, {rich.filesize.decimal(sum(entry.size for entry in entries))}"


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
