"""The self-test: a module is mended and compiled in a process of its own, and must do what it did before."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from . import Finding, Level

_HERE = Path(__file__).parent
_LIMIT = 300  # seconds


def check_self(env: Mapping[str, str]) -> Finding:
    """Mend and compile a log line, a guard and a branch, with an empty cache and without the settings in `env`."""
    if find_spec("torch") is None:
        return Finding("self-test", Level.SKIPPED, "torch is not installed here, so nothing can be compiled")
    found = _failures({key: value for key, value in env.items() if not key.startswith("GRAPHMEND_")})
    if not found:
        text = "a log line, a guard and a branch: one graph; results, records and exception as in eager"
        return Finding("self-test", Level.OK, text)
    remedy = "please report this, with the output of `graphmend doctor --json`"
    return Finding("self-test", Level.PROBLEM, "; ".join(found), remedy, {"failures": found})


def _failures(env: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_HERE / "selftest_module.py", f"{folder}/graphmend_selftest.py")
        program = shutil.copy(_HERE / "selftest_program.py", folder)
        env["GRAPHMEND_CACHE_DIR"] = f"{folder}/cache"
        command = [sys.executable, program]
        try:
            done = subprocess.run(
                command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT
            )
        except subprocess.TimeoutExpired:
            return [f"it took more than {_LIMIT} s"]
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            words = done.stderr.strip().splitlines()
            return [f"it ended with status {done.returncode}: {words[-1] if words else ''}"]
        found: list[str] = json.loads(lines[-1])
        return found
