"""Fixtures for the tests of the hook."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hook_cases import Ran, read_report

import graphmend_hook
from graphmend_hook.hook.install import Hook
from graphmend_hook.product.report import exit as at_exit
from graphmend_hook.product.report.ledger import ledger


@pytest.fixture(autouse=True)
def _clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings from outside, bytecode is written, the ledger starts empty, and nothing is said at the end."""
    for name in [name for name in os.environ if name.startswith("GRAPHMEND_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(at_exit, "_at_exit", lambda function, argument, pid: None)
    before = dict(ledger.modules)
    ledger.modules.clear()
    yield
    graphmend_hook.uninstall()
    ledger.modules.clear()
    ledger.modules.update(before)


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path / "graphmend-cache"


@pytest.fixture
def install(fresh_imports: Path, cache_dir: Path) -> Callable[..., Hook]:
    """`graphmend_hook.install` with a cache of its own, in a process that imports from `tmp_path`."""

    def install_hook(*modules: str, **options: object) -> Hook:
        return graphmend_hook.install(modules, **{"cache_dir": cache_dir, **options})

    return install_hook


@pytest.fixture
def hooked(python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Callable[..., Ran]:
    """Run python code in a fresh interpreter whose hook mends ``app``; it must succeed."""

    def run(code: str, *flags: str, **options: object) -> Ran:
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        settings = {"GRAPHMEND_MODULES": "app", "GRAPHMEND_REPORT": str(report), **options}
        ran = python(*flags, "-c", "import graphmend_hook\n" + code, **settings)
        assert ran.returncode == 0, ran.stderr
        return Ran(ran.stdout, ran.stderr, read_report(report) if report.exists() else {})

    return run
