"""What is reported, to whom, and by which process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hook_cases import MENDABLE, PLAIN

from graphmend_hook.diagnostics import Outcome, Site
from graphmend_hook.reporting.ledger import Ledger, ModuleRecord, Status
from graphmend_hook.reporting.text import as_json, as_text
from graphmend_hook.version import __version__

Write = Callable[[str, str], Path]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
MENDED = Site("defer", "f", 2, Outcome.MENDED)
DECLINED = Site("defer", "C.g", 9, Outcome.DECLINED, "GM101-R03", "a handler could catch it")
USE = "import graphmend_hook, app; app.f(7)"


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.add(ModuleRecord("a", "/a.py", Status.MENDED, (MENDED, MENDED, DECLINED), True, 0.25))
    ledger.add(ModuleRecord("b", "/b.py", Status.MENDED, (MENDED,), False, 0.5))
    ledger.add(ModuleRecord("c", "/c.py", Status.UNCHANGED, (DECLINED,), None))
    ledger.add(ModuleRecord("d", "/d.so", Status.NOT_ELIGIBLE, why="loaded by ExtensionFileLoader"))
    ledger.add(ModuleRecord("e", "/e.py", Status.FAILED, why="RuntimeError('x')"))
    return ledger


def test_text(ledger: Ledger) -> None:
    assert as_text(ledger).splitlines() == [
        f"graphmend_hook {__version__}, process {os.getpid()}",
        "  modules mended: 2 (1 from the cache, 1 not; 0.75 s)",
        "  modules unchanged: 1",
        "  modules not eligible: 1",
        "  modules failed: 1",
        "  sites mended by defer: 3",
        "  declined GM101-R03: 2, a handler could catch it",
        "    for example /a.py:9 in C.g",
        "  d: loaded by ExtensionFileLoader",
        "  e: RuntimeError('x')",
    ]


def test_text_of_nothing() -> None:
    assert as_text(Ledger()) == f"graphmend_hook {__version__}, process {os.getpid()}"


def test_json(ledger: Ledger) -> None:
    report = json.loads(json.dumps(as_json(ledger)))
    assert {key: report[key] for key in report if key not in ("modules", "traced")} == {
        "schema": 1,
        "version": __version__,
        "pid": os.getpid(),
    }
    assert [module["status"] for module in report["modules"]] == [
        "mended",
        "mended",
        "unchanged",
        "not eligible",
        "failed",
    ]
    assert report["modules"][2] == {
        "name": "c",
        "path": "/c.py",
        "status": "unchanged",
        "cached": None,
        "seconds": 0.0,
        "why": "",
        "sites": [
            {
                "rule": "defer",
                "function": "C.g",
                "line": 9,
                "outcome": "declined",
                "code": "GM101-R03",
                "reason": "a handler could catch it",
            }
        ],
    }


def test_the_last_record_of_a_module_counts(ledger: Ledger) -> None:
    ledger.add(ModuleRecord("a", "/a.py", Status.UNCHANGED))
    assert [record.name for record in ledger.with_status(Status.UNCHANGED)] == ["a", "c"]
    assert ledger.counts() == {("defer", "mended"): 1, ("defer", "GM101-R03"): 1}


# At the end of a process


def test_report_to_a_path(write: Write, python: Python, tmp_path: Path) -> None:
    path = write("app.py", MENDABLE)
    for cached in (False, True):
        ran = python("-c", USE, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report.json")
        assert (ran.stdout, ran.stderr) == ("value 7\n", "")
        [module] = json.loads((tmp_path / "report.json").read_text())["modules"]
        assert module.pop("seconds") > 0
        site = {"rule": "defer", "function": "f", "line": 2, "outcome": "mended", "code": "", "reason": ""}
        expected: dict[str, Any] = {"name": "app", "path": str(path), "status": "mended", "cached": cached}
        assert module == {**expected, "why": "", "sites": [site]}


def test_report_to_a_path_of_each_process(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = USE + "; import os; print(os.getpid())"
    pids = [
        python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="r-{pid}.json").stdout.split()[-1] for _ in "ab"
    ]
    assert sorted(path.name for path in tmp_path.glob("r-*")) == sorted(f"r-{pid}.json" for pid in pids)
    for pid in pids:
        assert json.loads((tmp_path / f"r-{pid}.json").read_text())["pid"] == int(pid)


def test_relative_path_is_that_of_the_start(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    python("-c", USE + "; import os; os.chdir('/')", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report.json")
    assert (tmp_path / "report.json").is_file()


def test_report_to_stderr(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="1")
    assert ran.stdout == "value 7\n"
    assert "  sites mended by defer: 1\n" in ran.stderr


@pytest.mark.parametrize("target", ["/proc/1/nowhere/report.json", "app.py/report.json", "."])
def test_unwritable_path_is_told_and_changes_nothing(target: str, write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE + "; raise SystemExit(3)", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target)
    assert (ran.returncode, ran.stdout) == (3, "value 7\n")
    path = os.path.normpath(tmp_path / target)
    assert ran.stderr.startswith(f"graphmend_hook: GRAPHMEND_REPORT: cannot write {path}: ")
    assert len(ran.stderr.splitlines()) == 1


FORK = """
import graphmend_hook, app, os, sys
child = os.fork()
if child:
    os.waitpid(child, 0)
    os.chdir("/")
else:
    {child}
    sys.exit()
"""


@pytest.mark.parametrize("target", ["report-{pid}.json", "-"])
@pytest.mark.parametrize("child", ["pass", "graphmend_hook.install('app')"])
def test_forked_child_does_not_report(target: str, child: str, write: Write, python: Python, tmp_path: Path) -> None:
    """It ends by `sys.exit`, so that it runs the exit functions that it inherited."""
    write("app.py", MENDABLE)
    code = FORK.format(child=child)
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target, GRAPHMEND_STRICT="1")
    reports = len(list(tmp_path.glob("report-*"))) if target != "-" else ran.stderr.count("modules mended")
    assert (ran.returncode, reports) == (0, 1), ran.stderr


def test_forked_child_with_a_hook_of_its_own_reports(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = FORK.format(child="graphmend_hook.install('other')")
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report-{pid}.json")
    assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.glob("report-*"))) == 2


def test_many_hooks_write_one_report(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    code = "import graphmend_hook as g; g.install('app'); g.install('lib'); g.uninstall(); g.install('app'); import app"
    ran = python("-c", code, GRAPHMEND_REPORT="-")
    assert ran.stderr.count("modules mended: 1") == 1, ran.stderr


@pytest.mark.parametrize(("source", "says"), [(MENDABLE, False), (PLAIN, True)], ids=["mended", "nothing mended"])
def test_strict_says_that_nothing_was_mended(source: str, says: bool, write: Write, python: Python) -> None:
    write("app.py", source)
    ran = python("-c", USE, GRAPHMEND_MODULES="app,lib", GRAPHMEND_STRICT="1")
    assert ran.stderr.startswith("GM004: nothing was mended in this process: no module matched 'app,lib'") is says
    assert bool(ran.stderr) is says


def test_report_function(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE + "; print(graphmend_hook.report())", GRAPHMEND_MODULES="app")
    assert "sites mended by defer: 1" in ran.stdout, ran.stderr
