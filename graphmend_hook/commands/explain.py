"""Run a program without the hook and with it, and say of each graph break what became of it, and what to do."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..diagnostics import ConfigError, GraphmendError
from ..explain import page
from ..explain.join import NEW, REMAINING, REMOVED, Break, Explanation, Json, explain
from ..options import FOR_A_PROGRAM, OF_MENDING, add_settings, passed_on
from ..reporting.text import PLAIN, counted, shorten
from . import require

HELP = "run a program without and with the hook, and explain each graph break"
_HEADINGS = {
    REMAINING: ("Breaks that remain", "yellow"),
    NEW: ("Breaks that only the mended program has", "red"),
    REMOVED: ("Breaks that are gone", "green"),
}


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
    require("torch")
    known = _read_baseline(options)
    found = _explain(options)
    show(found, Console(**PLAIN))
    if options.json:
        _write_json(options.json, found.as_json())
    if options.html:
        Path(options.html).write_text(page.html(found), encoding="utf-8")
    if options.update_baseline:
        _write_json(options.baseline, {"schema": 1, "breaks": sorted({each.key for each in found.remaining})})
        return 0
    new = [each for each in found.remaining if known is not None and each.key not in known]
    if new:
        show_new(new, options.baseline, Console(stderr=True, **PLAIN))
    return 1 if new or (options.fail_on_break and found.remaining) else 0


def _explain(options: argparse.Namespace) -> Explanation:
    variables = passed_on(options)
    before = _run("without the hook", options.program, {"GRAPHMEND_DISABLE": "1"})
    after = _run("with the hook", options.program, {"GRAPHMEND_DISABLE": "", **variables})
    if not before["regions"] and not after["regions"]:
        raise GraphmendError("the program compiled nothing: nowhere in it did torch.compile meet a function to trace")
    return explain(options.program, before, after)


def _run(what: str, program: list[str], variables: Mapping[str, str]) -> Json:
    """What was observed of the program in a fresh process; its words are kept back, unless it fails."""
    print(f"graphmend explain: running {what} ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "observed.json")
        command = [sys.executable, "-m", "graphmend_hook.explain", str(out), "--", *program]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        if done.returncode or not out.is_file():
            words = f"its last words:\n{done.stderr[-4000:].rstrip()}"
            raise GraphmendError(f"{what}, the program ended with status {done.returncode}; {words}")
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


def _write_json(file: str, document: Json) -> None:
    Path(file).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def show(found: Explanation, console: Console) -> None:
    console.print(_regions(found))
    for state, (heading, colour) in _HEADINGS.items():
        breaks = [each for each in found.breaks if each.state == state]
        if breaks:
            console.print(f"\n{heading}: {len(breaks)}", style=f"bold {colour}")
            for each in breaks:
                _show_break(each, console)
    if found.flag:
        console.print("\nTo mend the packages that hold breaks as well, and keep what is set:")
        console.print(f"  {found.flag}", style="bold", soft_wrap=True, highlight=False)
    if not found.remaining:
        console.print("\nNo graph break remains.", style="bold green")


def show_new(breaks: Sequence[Break], baseline: str, console: Console) -> None:
    console.print(f"{counted(len(breaks), 'break')} that {baseline} does not know:", style="bold red", soft_wrap=True)
    for each in breaks:
        console.print(f"  {each.key}", soft_wrap=True)


def _regions(found: Explanation) -> Table:
    table = Table(title="Graphs", title_justify="left")
    for heading in ("compiled", "called at", "without the hook", "with the hook", "recompiled"):
        table.add_column(heading, justify="left" if heading in ("compiled", "called at") else "right")
    for region in found.regions:
        where = f"{shorten(region.file)}:{region.line}" if region.file else ""
        arms = zip(region.graphs, region.operations, strict=True)
        cells = (f"{graphs} ({operations} operations)" for graphs, operations in arms)
        again = "/".join(map(str, region.recompiled)) if any(region.recompiled) else ""
        table.add_row(region.name, where, *cells, again)
    return table


def _show_break(each: Break, console: Console) -> None:
    before, after = each.times
    if each.state == REMAINING and before != after:
        times = f", {before} times without the hook, {after} with it"
    else:
        met = before or after
        times = f", {met} times" if met > 1 else ""
    where = f"{shorten(each.file)}:{each.line}"
    console.print(Text.assemble("\n  ", (where, "bold"), f" in {each.function}{times}"), soft_wrap=True)
    reason = Text("" if each.state == REMOVED else f"Dynamo: {each.headline}")
    said = Text(f"{each.code} {each.said}".lstrip())
    advice = Text(each.advice and f"→ {each.advice}", "bold")
    lines = Text("\n").join(filter(None, (Text(each.text, "cyan"), reason, said, advice)))
    console.print(Padding(lines, (0, 0, 0, 4)))
