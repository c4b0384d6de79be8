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

from rich.console import Console
from rich.table import Table

from ...settings.config import Kind, settings_of_kind
from ...settings.options import add_settings, passed_on
from ..report.text import PLAIN
from . import require

_PROGRAM = Path(__file__).parents[2] / "demo_t5.py"
_CACHE = "GRAPHMEND_CACHE_DIR"
_ROWS = ("graphs captured", "graph breaks", "log records", "first result after", "modules mended", "cache hits")

HELP = "compile T5 without and with the hook, and show the difference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", default="eager", help="torch.compile backend (default: %(default)s)")
    add_settings(parser, settings_of_kind(Kind.REWRITING, Kind.TRACING, Kind.STORAGE))


def run(options: argparse.Namespace) -> int:
    """Print both arms side by side.  Returns 0 if the hook lost nothing and left one graph, else 1."""
    backend, variables = options.backend, passed_on(options)
    plain, mended = _run(backend, None), _run(backend, variables)
    if plain is None or mended is None:
        return 1
    console = Console(**PLAIN)
    versions = plain["versions"]
    title = f"T5, transformers {versions['transformers']}, torch {versions['torch']}, backend {backend}"
    table = Table(title=title, title_justify="left")
    for heading in ("", "without the hook", "with the hook"):
        table.add_column(heading, no_wrap=True)
    for row in zip(_ROWS, plain["cells"], mended["cells"], strict=True):
        table.add_row(*row)
    console.print(table)
    for record in plain["records"]:
        console.print(f"  record: {record}")
    same_outputs = plain["digest"] == mended["digest"]
    same_records = plain["records"] == mended["records"]
    outputs = "bit-equal" if same_outputs else "equal to eager within 1e-5" if mended["equal_to_eager"] else "DIFFERENT"
    console.print(f"  outputs: {outputs}; log records: {'the same' if same_records else 'DIFFERENT'}")
    return 0 if mended["equal_to_eager"] and same_records and mended["graphs"] == 1 else 1


def _run(backend: str, variables: dict[str, str] | None) -> dict[str, Any] | None:
    """One arm in a fresh process, with the cells of `_ROWS`; None, and its own words on stderr, if it failed.

    variables: the settings of the hook; None is the arm without it.
    """
    kept = {key: text for key, text in os.environ.items() if not key.startswith("GRAPHMEND_") or key == _CACHE}
    env = kept | {"HF_HUB_OFFLINE": "1"} | (variables or {})
    with tempfile.TemporaryDirectory() as folder:
        out, report = Path(folder, "seen.json"), Path(folder, "report.json")
        launcher = [] if variables is None else ["-m", "graphmend_hook", f"--report={report}"]
        command = [sys.executable, *launcher, str(_PROGRAM), str(out), backend]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            require("torch", "transformers")
            print(f"{' '.join(command)} failed:\n{done.stderr}", file=sys.stderr)
            return None
        seen: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        mended = cached = "-"
        if variables is not None:
            modules = json.loads(report.read_text(encoding="utf-8"))["modules"]
            mended = f"{sum(module['status'] == 'mended' for module in modules)} of {len(modules)}"
            asked = [module["cached"] for module in modules if module["cached"] is not None]
            cached = f"{sum(asked)} of {len(asked)}"
    counts = (seen["graphs"], seen["graphs"] - 1, len(seen["records"]))
    seen["cells"] = (*map(str, counts), f"{seen['first_result']:.1f} s", mended, cached)
    return seen
