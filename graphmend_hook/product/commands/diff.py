"""``graphmend diff MODULE|FILE``: the original of each mended function, with what is added to it when it is mended."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ...diagnostics import ConfigError, Outcome, Site
from ...hook.locate import source_file
from ...rewrite import Change, active_rules, changes_of
from ...settings.config import Kind, settings_of_kind
from ...settings.options import add_settings, settings_of
from ...settings.syntax import RULE_NAMES, check_mendable, named
from ..report.listing import Line, Listing, encloses, listings
from ..report.text import PLAIN

HELP = "show the mended functions of a module, with what is added to them"
_LEGEND = "numbered lines: the original, as eager runs it; +: added; GM: graphmend_hook.runtime"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="MODULE|FILE", help="a module, which is not imported, or a Python file")
    parser.add_argument("--rule", metavar="NAME", help=f"only what this rule mended: {', '.join(RULE_NAMES)}")
    parser.add_argument("--function", metavar="QUALNAME", help="only this function or class, and what is inside it")
    parser.add_argument(
        "--context", metavar="N", type=int, default=3, help="lines around a site (default: %(default)s)"
    )
    add_settings(parser, settings_of_kind(Kind.REWRITING))


def run(options: argparse.Namespace) -> int:
    """Returns 0 if something is mended, else 1.  Raises ConfigError for an argument that names nothing."""
    path = _path(options.target)
    source = _read(path)
    rules = active_rules(settings_of(options).rules)
    try:
        changes = changes_of(source, str(path), rules)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{path} cannot be parsed: {error}") from None
    if options.function is not None:
        changes = _in_function(changes, options.function)
    if options.rule is not None:
        changes = _by_rule(changes, options.rule)
    console = Console(**PLAIN, soft_wrap=True)
    sites = [change.site for change in changes]
    console.print(str(path), style="bold")
    console.print(f"  {_summary(sites)}")
    functions = listings(source, changes, max(options.context, 0))
    if functions:
        console.print(f"  {_LEGEND}", style="dim")
        for function in functions:
            _print_function(console, function)
    _print_declined_elsewhere(console, sites, functions)
    return 0 if functions else 1


def _path(target: str) -> Path:
    if os.sep in target or target.endswith(".py") or os.path.isfile(target):
        return Path(target)
    with named("MODULE"):
        check_mendable(target)
    return Path(source_file(target))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; name a module or a Python file") from None


def _in_function(changes: Sequence[Change], name: str) -> list[Change]:
    chosen = [change for change in changes if f"{change.site.function}.".startswith(f"{name}.")]
    if not chosen:
        known = sorted({change.site.function for change in changes})
        has = f"those with one are {', '.join(known)}" if known else "the module has none"
        raise ConfigError(f"--function: there is no function {name!r} with a site; {has}")
    return chosen


def _by_rule(changes: Sequence[Change], rule: str) -> list[Change]:
    """The sites of `rule`, and the mended statements that they stand in, in whose place both are seen."""
    if rule not in RULE_NAMES:
        raise ConfigError(f"--rule: there is no rule {rule!r}; use one of {', '.join(RULE_NAMES)}")
    mended = [change.statement for change in changes if change.emitted and change.site.rule == rule]
    return [
        change
        for change in changes
        if change.site.rule == rule
        or (change.emitted and any(encloses(change.statement, statement) for statement in mended))
    ]


def _summary(sites: Sequence[Site]) -> str:
    mended = Counter(site.rule for site in sites if site.outcome is Outcome.MENDED)
    declined = sum(site.outcome is Outcome.DECLINED for site in sites)
    if not mended:
        return f"nothing is mended; declined: {declined}" if declined else "nothing is mended; there are no sites"
    rules = ", ".join(f"{rule} {count}" for rule, count in mended.items())
    return f"sites mended: {sum(mended.values())} ({rules}); declined: {declined}"


def _print_function(console: Console, function: Listing) -> None:
    console.print(f"\ndef {function.function}", style="bold")
    for line in function.lines:
        console.print(_styled(line) if line else Text(f"{'...':>15}", style="dim"))
    for site in function.sites:
        if site.outcome is Outcome.DECLINED:
            console.print(f"{site.code} line {site.line}: {site.reason}", style="yellow")


def _styled(line: Line) -> Text:
    styled = Text.assemble(
        (f"{' '.join(line.marks):<9} ", "yellow" if any("-" in mark for mark in line.marks) else "cyan"),
        (f"{line.number or '':>5} ", "dim"),
        (f"{' ' if line.number else '+'} {line.text}", "" if line.number else "green"),
    )
    styled.rstrip()
    return styled


def _print_declined_elsewhere(console: Console, sites: Sequence[Site], functions: Sequence[Listing]) -> None:
    """One by one if that is all there is to say, else their number."""
    shown = {site for function in functions for site in function.sites}
    rest = [site for site in sites if site.outcome is Outcome.DECLINED and site not in shown]
    if not functions:
        for site in rest:
            console.print(f"{site.code} line {site.line} in {site.function}: {site.reason}", style="yellow")
    elif rest:
        counts = ", ".join(f"{code} {count}" for code, count in Counter(site.code for site in rest).most_common())
        console.print(f"\ndeclined in other functions: {counts}", style="yellow")
