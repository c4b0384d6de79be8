"""``graphmend doctor``: why did nothing happen?

Looks at versions, settings, the start of python, the cache, and, by a self-test, at torch.  With a program, as python's
command line has it (``graphmend doctor train.py``, ``graphmend doctor -m module``), runs that too, as python would,
and says whether it had the hook, what was imported before it and by whom, and what cannot be mended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ...diagnostics import ConfigError
from ...settings.options import OF_MENDING, add_settings, passed_on
from ...version import __version__
from ..doctor import Finding, Level, environment
from ..doctor import program as programs
from ..report.text import PLAIN

HELP = "say why nothing happened: settings, start-up, imports, cache, and a self-test"
SCHEMA = 1  # of the JSON; raised when a field goes away or changes its meaning
_STYLES = {Level.OK: "green", Level.SKIPPED: "dim", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_WIDTH = max(len(level.value) for level in Level) + 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] [script.py | -m module | -c code] [arguments ...]"
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_settings(parser, OF_MENDING)


def run(options: argparse.Namespace) -> int:
    """Print a line for each finding on stdout.  Returns 1 if there is a problem, else 0."""
    env = os.environ | passed_on(options)
    program = options.program
    if program and program[0].startswith("-") and program[0] not in ("-m", "-c", "-"):
        raise ConfigError(f"unknown option {program[0]}; name a script, -m MODULE or -c CODE")
    findings = []
    for finding in _findings(env, program):
        findings.append(finding)
        if not options.json:
            _print(finding)
    if options.json:
        shown = [{**vars(finding), "level": finding.level.value} for finding in findings]
        print(json.dumps({"schema": SCHEMA, "version": __version__, "findings": shown}, indent=1))
    return 1 if any(finding.level is Level.PROBLEM for finding in findings) else 0


def _findings(env: dict[str, str], program: list[str]) -> Iterator[Finding]:
    yield environment.check_versions()
    found, settings = environment.check_settings(env)
    yield from found
    yield environment.check_startup(env)
    if settings is not None:
        status, seen = programs.watch(program, env)
        yield from programs.check_program(program, status, seen)
        yield environment.check_cache(settings, seen)
    with Console(stderr=True).status("self-test: compiling with torch"):
        last = list(environment.check_self(env))
    yield from last


def _print(finding: Finding) -> None:
    line = Text(f"{finding.level.value:<{_WIDTH}}", style=_STYLES[finding.level])
    line.append(f"{finding.check}: {finding.text}", style="none")
    console = Console(**PLAIN, soft_wrap=True)
    console.print(line)
    if finding.remedy:
        console.print(f"{'':<{_WIDTH}}-> {finding.remedy}")
    sys.stdout.flush()  # before what the program says
