"""Run a program without the hook and with it, and say of each graph break what became of it, and what to do."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ...diagnostics import ConfigError, GraphmendError
from ...settings.options import FOR_A_PROGRAM, OF_MENDING, add_settings, passed_on
from ..explain import baseline, page
from ..explain.following import CALLS, FOLDER
from ..explain.formats import FORMATS
from ..explain.join import Break, Explanation, Json, explain
from ..explain.processes import gather
from ..explain.text import show, show_compared
from ..report.text import PLAIN, counted
from . import require

_INTERRUPTED = 130  # the status that a shell gives for it
HELP = "run a program without and with the hook, and explain each graph break"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] (script.py | -m module | -c code) [arguments ...]"
    add_settings(parser, OF_MENDING, FOR_A_PROGRAM)
    parser.add_argument(
        "--json", metavar="FILE", help="also write it for machines; - is stdout, and nothing else there"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also write it as a page: breaks, graphs, the source beside what runs"
    )
    parser.add_argument(
        "--calls", metavar="N", help="end each process of the program after N calls of compiled functions"
    )
    parser.add_argument("--fail-on-break", action="store_true", help="exit with 1 if a break remains")
    parser.add_argument("--format", choices=FORMATS, help="print the breaks that remain for a service for CI instead")
    parser.add_argument("--baseline", metavar="FILE", help="exit with 1 if a break remains that FILE does not know")
    parser.add_argument("--update-baseline", action="store_true", help="write the breaks that remain to that FILE")
    parser.add_argument("--strict-baseline", action="store_true", help="exit with 1 also if FILE knows of too many")


def run(options: argparse.Namespace) -> int:
    """Returns 0, or 1 where ``--fail-on-break`` or a baseline ask for it; 130 if the program was interrupted."""
    _check(options)
    known = baseline.read(options.baseline) if options.baseline and not options.update_baseline else None
    try:
        found = _explain(options)
    except KeyboardInterrupt:
        print("graphmend explain: interrupted before there was anything to compare", file=sys.stderr)
        return _INTERRUPTED
    compared = None if known is None else baseline.compare(known, found.remaining)
    failing = found.remaining if options.fail_on_break else compared.new if compared else ()
    _print(found, failing, options)
    if found.interrupted:
        print("graphmend explain: interrupted; this is what was seen until then", file=sys.stderr)
        return _INTERRUPTED
    if options.update_baseline:
        baseline.write(options.baseline, found.remaining)
        print(f"{options.baseline}: {counted(len(found.remaining), 'break')} written", file=sys.stderr)
        return 0
    if compared is not None:
        show_compared(compared, options.baseline, Console(stderr=True, **PLAIN))
    is_stale = options.strict_baseline and compared is not None and compared.fixed
    return 1 if failing or is_stale else 0


def _check(options: argparse.Namespace) -> None:
    if not options.program:
        raise ConfigError("there is no program to run; name a script, or use -m MODULE or -c CODE")
    for option in ("update_baseline", "strict_baseline"):
        if getattr(options, option) and not options.baseline:
            what = "write" if option == "update_baseline" else "compare with"
            raise ConfigError(f"--{option.replace('_', '-')} needs --baseline FILE, the file to {what}")
    if options.calls is not None and not (options.calls.isdecimal() and int(options.calls)):
        raise ConfigError(f"--calls: {options.calls!r} is no number of calls; give a whole number from 1 on")
    if options.format and options.json == "-":
        raise ConfigError("--format and --json - both want stdout; give --json a file")


def _print(found: Explanation, failing: Collection[Break], options: argparse.Namespace) -> None:
    """On stdout in one form, and in the files that are asked for."""
    if options.format:
        sys.stdout.write(FORMATS[options.format](found, failing))
    else:
        show(found, Console(stderr=options.json == "-", **PLAIN))
    document = json.dumps(found.as_json(), indent=1) + "\n"
    if options.json == "-":
        sys.stdout.write(document)
    elif options.json:
        Path(options.json).write_text(document, encoding="utf-8")
    if options.html:
        Path(options.html).write_text(page.html(found), encoding="utf-8")


def _explain(options: argparse.Namespace) -> Explanation:
    """Raises KeyboardInterrupt if nothing was seen with the hook."""
    variables, calls = passed_on(options), {CALLS: options.calls} if options.calls else {}
    before, interrupted = _run("without the hook", options.program, {"GRAPHMEND_DISABLE": "1", **calls})
    if interrupted:
        raise KeyboardInterrupt
    after, interrupted = _run("with the hook", options.program, {"GRAPHMEND_DISABLE": "", **variables, **calls})
    if not before["regions"] and not after["regions"]:
        require("torch")
        raise GraphmendError("the program compiled nothing: nowhere in it did torch.compile meet a function to trace")
    return replace(explain(options.program, before, after), interrupted=interrupted)


def _run(what: str, program: list[str], variables: Mapping[str, str]) -> tuple[Json, bool]:
    """What was observed of the program in a fresh process, and in its children, and whether it was interrupted.

    Its words are kept back, unless it fails.  Raises KeyboardInterrupt if it was interrupted, and nothing was observed.
    """
    print(f"graphmend explain: running {what} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "graphmend_hook.product.explain", "--", *program]
        environment = os.environ | variables | {FOLDER: folder}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        interrupted = False
        while True:
            try:
                _, errors = process.communicate()
                break
            except KeyboardInterrupt:  # the terminal has interrupted both; it writes what it has seen, and ends
                interrupted = True
        observed = gather(Path(folder))
        if interrupted and observed is None:
            raise KeyboardInterrupt
        if observed is None or (process.returncode and not interrupted):
            require("torch")
            words = f"its last words:\n{errors[-4000:].rstrip()}"
            raise GraphmendError(f"{what}, the program ended with status {process.returncode}; {words}")
    return observed, interrupted
