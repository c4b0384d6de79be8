"""Run a program without the hook and with it, and say of each graph break what became of it, and what to do."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from ..diagnostics import ConfigError, GraphmendError
from ..explain import page, text
from ..explain.join import Explanation, explain
from ..options import FOR_A_PROGRAM, OF_MENDING, add_settings, passed_on
from ..reporting.text import PLAIN
from ..reporting.verdict import Json

HELP = "run a program without and with the hook, and explain each graph break"
BROKEN = 1


class ProgramFailedError(GraphmendError):
    """The program ended with an error, or compiled nothing, so there is nothing to explain."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [options] (script.py | -m module | -c code) [arguments ...]"
    add_settings(parser, OF_MENDING, FOR_A_PROGRAM)
    parser.add_argument("--json", metavar="FILE", help="also write it for machines")
    parser.add_argument("--html", metavar="FILE", help="also write it as a page: the calls, their graphs, the source")
    parser.add_argument("--fail-on-break", action="store_true", help="exit with 1 if a break remains")
    parser.add_argument("--baseline", metavar="FILE", help="exit with 1 if a break remains that FILE does not know")
    parser.add_argument("--update-baseline", action="store_true", help="write the breaks that remain to that FILE")


def run(options: argparse.Namespace) -> int:
    """Returns 0, or 1 where ``--fail-on-break`` or ``--baseline`` ask for it."""
    if not options.program:
        raise ConfigError("there is no program to run; name a script, or use -m MODULE or -c CODE")
    if options.update_baseline and not options.baseline:
        raise ConfigError("--update-baseline needs --baseline FILE, the file to write")
    known = _read_baseline(options)
    found = _explain(options)
    text.show(found, Console(**PLAIN))
    if options.json:
        Path(options.json).write_text(json.dumps(found.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.html:
        Path(options.html).write_text(page.html(found), encoding="utf-8")
    if options.update_baseline:
        _write_baseline(options.baseline, found)
        return 0
    new = [each for each in found.remaining if known is not None and each.key not in known]
    if new:
        text.show_new(new, options.baseline, Console(stderr=True, **PLAIN))
    return BROKEN if new or (options.fail_on_break and found.remaining) else 0


def _explain(options: argparse.Namespace) -> Explanation:
    variables = passed_on(options)
    before = _run("without the hook", options.program, {"GRAPHMEND_DISABLE": "1"})
    after = _run("with the hook", options.program, {"GRAPHMEND_DISABLE": "", **variables})
    if not before["regions"] and not after["regions"]:
        raise ProgramFailedError(
            "the program compiled nothing: nowhere in it did torch.compile meet a function to trace"
        )
    return explain(options.program, before, after)


def _run(what: str, program: list[str], variables: Mapping[str, str]) -> Json:
    """What was observed of the program in a fresh process; its words are kept back, unless it fails."""
    print(f"graphmend explain: running {what} ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "observed.json")
        command = [sys.executable, "-m", "graphmend_hook.explain", str(out), "--", *program]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        if done.returncode or not out.is_file():
            words = done.stderr[-4000:].rstrip()
            raise ProgramFailedError(
                f"{what}, the program ended with status {done.returncode}; its last words:\n{words}"
            )
        observed: Json = json.loads(out.read_text(encoding="utf-8"))
    return observed


def _read_baseline(options: argparse.Namespace) -> set[str] | None:
    file = options.baseline
    if not file or options.update_baseline:
        return None
    try:
        return set(json.loads(Path(file).read_text(encoding="utf-8"))["breaks"])
    except OSError as error:
        why = f"cannot read {file}: {error.strerror}; make it with --update-baseline"
    except (ValueError, KeyError, TypeError):
        why = f"{file} is not a baseline; make it anew with --update-baseline"
    raise ConfigError(f"--baseline: {why}")


def _write_baseline(file: str, found: Explanation) -> None:
    known = {"schema": 1, "breaks": sorted({each.key for each in found.remaining})}
    Path(file).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
