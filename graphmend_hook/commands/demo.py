"""``graphmend demo``: the same script, compiled in two fresh processes, without the hook and with it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..config import settings_of_kind
from ..options import add_settings, as_words, passed_on
from ..setting import Kind

_PROGRAM = Path(__file__).parents[1] / "demo_t5.py"
_ROWS = {
    "graphs": "graphs captured",
    "breaks": "graph breaks",
    "records": "log records",
    "first_result": "first result after",
    "modules": "modules mended",
    "cache": "cache hits",
}


HELP = "compile T5 without and with the hook, and show the difference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", default="eager", help="torch.compile backend (default: %(default)s)")
    add_settings(parser, settings_of_kind(Kind.REWRITING, Kind.TRACING, Kind.STORAGE))


def run(options: argparse.Namespace) -> int:
    """Run both arms and print them side by side.

    Returns 0 if the hook lost nothing and left one graph, else 1.
    """
    import rich.console
    import rich.table

    backend, words = options.backend, as_words(passed_on(options))
    with tempfile.TemporaryDirectory() as folder:
        plain = _run(backend, Path(folder), None)
        mended = _run(backend, Path(folder), words)
    if plain is None or mended is None:
        return 1
    console = rich.console.Console()
    versions = plain["versions"]
    title = f"T5, transformers {versions['transformers']}, torch {versions['torch']}, backend {backend}"
    table = rich.table.Table(title=title, title_justify="left")
    for heading in ("", "without the hook", "with the hook"):
        table.add_column(heading, no_wrap=True)
    for key, label in _ROWS.items():
        table.add_row(label, _cell(plain, key), _cell(mended, key))
    console.print(table)
    for record in plain["records"]:
        console.print(f"  record: {record}", highlight=False, markup=False)
    same_outputs = plain["digest"] == mended["digest"]
    same_records = plain["records"] == mended["records"]
    outputs = "bit-equal" if same_outputs else "equal to eager within 1e-5" if mended["equal_to_eager"] else "DIFFERENT"
    console.print(f"  outputs: {outputs}; log records: {'the same' if same_records else 'DIFFERENT'}")
    good = mended["equal_to_eager"] and same_records and mended["graphs"] == 1
    return 0 if good else 1


def _run(backend: str, folder: Path, options: list[str] | None) -> dict[str, Any] | None:
    """One arm in a fresh process; None, and its own words on stderr, if it failed.

    options: of the hook; None is the arm without it.
    """
    hook = options is not None
    out, report = folder / f"{hook}.json", folder / f"{hook}.report.json"
    launcher = [] if options is None else ["-m", "graphmend_hook", f"--report={report}", *options]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GRAPHMEND_")}
    env |= {"HF_HUB_OFFLINE": "1"}
    if "GRAPHMEND_CACHE_DIR" in os.environ:
        env["GRAPHMEND_CACHE_DIR"] = os.environ["GRAPHMEND_CACHE_DIR"]
    command = [sys.executable, *launcher, str(_PROGRAM), str(out), backend]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{' '.join(command)} failed:\n{done.stderr}", file=sys.stderr)
        return None
    seen: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    seen["breaks"] = seen["graphs"] - 1
    if hook:
        modules = json.loads(report.read_text(encoding="utf-8"))["modules"]
        mended = [module for module in modules if module["status"] == "mended"]
        hits = sum(bool(module["cached"]) for module in modules)
        seen["modules"] = f"{len(mended)} of {len(modules)}"
        seen["cache"] = f"{hits} of {len(modules)}"
    return seen


def _cell(arm: dict[str, Any], key: str) -> str:
    value = arm.get(key, "-")
    if key == "records":
        return str(len(value))
    return f"{value:.1f} s" if isinstance(value, float) else str(value)
