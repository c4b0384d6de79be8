"""Run a program without the hook and with it, and say of each graph break what became of it, and what to do."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnostics import GraphmendError
from ..explain.join import Explanation, explain
from ..options import FOR_A_PROGRAM, OF_MENDING, add_settings, as_words, passed_on

HELP = "run a program without and with the hook, and explain each graph break"
BROKEN = 1


class ProgramFailedError(GraphmendError):
    """The program ended with an error, or compiled nothing, so there is nothing to explain."""


class BaselineError(GraphmendError):
    """The file of known breaks cannot be used."""


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
    from rich.console import Console

    from ..explain import page, text

    if not options.program:
        raise ProgramFailedError("there is no program to run; name a script, or use -m MODULE or -c CODE")
    if options.update_baseline and not options.baseline:
        raise BaselineError("--update-baseline needs --baseline FILE, the file to write")
    known = _read_baseline(options)
    found = _explain(options)
    text.show(found, Console())
    if options.json:
        Path(options.json).write_text(json.dumps(found.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.html:
        Path(options.html).write_text(page.html(found), encoding="utf-8")
    if options.update_baseline:
        _write_baseline(options.baseline, found)
        return 0
    new = [each for each in found.remaining if known is not None and each.key not in known]
    if new:
        text.show_new(new, options.baseline, Console(stderr=True))
    return BROKEN if new or (options.fail_on_break and found.remaining) else 0


@dataclass(frozen=True)
class _Arm:
    observed: dict[str, Any]
    report: dict[str, Any]


def _explain(options: argparse.Namespace) -> Explanation:
    words = as_words(passed_on(options))
    with tempfile.TemporaryDirectory() as folder:
        before = _run("without the hook", ["--disable"], options.program, Path(folder, "before"))
        after = _run("with the hook", words, options.program, Path(folder, "after"))
    if not before.observed["regions"] and not after.observed["regions"]:
        raise ProgramFailedError(
            "the program compiled nothing: nowhere in it did torch.compile meet a function to trace"
        )
    return explain(options.program, before.observed, after.observed, after.report)


def _run(what: str, own: list[str], program: list[str], folder: Path) -> _Arm:
    """The program in a fresh process; its words are kept back, unless it fails."""
    folder.mkdir()
    observed, report = folder / "observed.json", folder / "report.json"
    command = [sys.executable, "-m", "graphmend_hook.explain", str(observed), f"--report={report}", *own, *program]
    env = {name: value for name, value in os.environ.items() if name != "GRAPHMEND_DISABLE"}
    print(f"graphmend explain: running {what} ...", file=sys.stderr)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode or not observed.is_file():
        raise ProgramFailedError(
            f"{what}, the program ended with status {done.returncode}; its last words:\n{done.stderr[-4000:].rstrip()}"
        )
    said = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {"modules": [], "traced": []}
    return _Arm(json.loads(observed.read_text(encoding="utf-8")), said)


def _read_baseline(options: argparse.Namespace) -> set[str] | None:
    if not options.baseline or options.update_baseline:
        return None
    try:
        known = json.loads(Path(options.baseline).read_text(encoding="utf-8"))
        return set(known["breaks"])
    except OSError as error:
        raise BaselineError(
            f"--baseline: cannot read {options.baseline}: {error.strerror}; make it with --update-baseline"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise BaselineError(
            f"--baseline: {options.baseline} is not a baseline; make it anew with --update-baseline"
        ) from None


def _write_baseline(file: str, found: Explanation) -> None:
    known = {"schema": 1, "breaks": sorted({each.key for each in found.remaining})}
    Path(file).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
