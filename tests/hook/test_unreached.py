"""Covered modules that no hook was asked about are in the report, with who has loaded them or what to do."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hook_cases import MENDABLE, is_mended, read_report, record

import graphmend_hook
from graphmend_hook.hook.install import Hook
from graphmend_hook.product.report.ledger import Status, ledger

Write = Callable[[str, str], Path]
Install = Callable[..., Hook]


class Theirs(SourceFileLoader):
    """The loader of another hook."""


@pytest.fixture
def theirs_first(fresh_imports: Path) -> Iterator[None]:
    """Another hook that is asked before ours, as one is that was installed later."""
    files = FileFinder(str(fresh_imports), (Theirs, [".py"]))
    finder = SimpleNamespace(find_spec=lambda name, *_: files.find_spec(name))
    yield sys.meta_path.insert(0, finder)
    sys.meta_path.remove(finder)


def test_another_hook_was_first(install: Install, write: Write, request: pytest.FixtureRequest) -> None:
    write("gm_taken.py", MENDABLE)
    install("gm_taken")
    request.getfixturevalue("theirs_first")
    assert not is_mended(importlib.import_module("gm_taken"))
    assert "gm_taken" not in ledger.modules
    assert f"1 module: loaded by {__name__}.Theirs, which was asked before" in graphmend_hook.report()
    assert record("gm_taken").status is Status.NOT_ELIGIBLE


class Tracer:
    """As birdseye's: it runs a tree of its own making, and has no code to give."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(Path(str(self.spec.origin)).read_text(), str(self.spec.origin), "exec"), vars(module))


@pytest.mark.parametrize("ours_first", [True, False])
def test_tracer_with_a_loader_of_its_own(
    ours_first: bool, install: Install, write: Write, fresh_imports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("gm_traced.py", MENDABLE)
    files = FileFinder(str(fresh_imports), (SourceFileLoader, [".py"]))

    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        spec = files.find_spec(name)
        return spec and spec_from_file_location(name, spec.origin, loader=Tracer(spec))

    finder = SimpleNamespace(find_spec=find_spec)
    for step in ("ours", "theirs") if ours_first else ("theirs", "ours"):
        if step == "ours":
            install("gm_traced")
        else:
            monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert importlib.import_module("gm_traced").f(7) == 7
    assert f"loaded by {__name__}.Tracer" in graphmend_hook.report()
    assert record("gm_traced").status is Status.NOT_ELIGIBLE


def test_loader_made_by_hand(install: Install, write: Write) -> None:
    """The report says what to do, and that helps."""
    path = write("gm_by_hand.py", MENDABLE)
    install("gm_by_hand")
    loader = SourceFileLoader("gm_by_hand", str(path))
    module = module_from_spec(spec_from_loader("gm_by_hand", loader))
    sys.modules["gm_by_hand"] = module
    loader.exec_module(module)
    assert "mend it by graphmend_hook.mend(module)" in graphmend_hook.report()
    graphmend_hook.mend(module)
    assert "_@graphmend" in module.f.__code__.co_names
    assert record("gm_by_hand").status is Status.MENDED


def test_what_was_imported_before_uninstall_counts(install: Install, write: Write, theirs_first: None) -> None:
    for name in ("gm_before", "gm_after"):
        write(f"{name}.py", MENDABLE)
    hook = install("gm_before", "gm_after")
    importlib.import_module("gm_before")
    hook.uninstall()
    importlib.import_module("gm_after")
    graphmend_hook.report()
    assert list(ledger.modules) == ["gm_before"]


def test_denied_and_uncovered_modules_are_not_told_of(install: Install, write: Write, theirs_first: None) -> None:
    for name in ("gm_denied", "gm_other"):
        write(f"{name}.py", MENDABLE)
        importlib.import_module(name)
    install("gm_denied", deny="gm_denied")
    graphmend_hook.report()
    assert not ledger.modules


def test_modules_of_odd_forms(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a spec, without a file, and what is no module at all."""
    odd = ModuleType("gm_odd")
    monkeypatch.setitem(sys.modules, "gm_odd", odd)
    monkeypatch.setitem(sys.modules, "gm_none", None)
    monkeypatch.setitem(sys.modules, "gm_text", "text")
    install("gm_odd", "gm_none", "gm_text")
    graphmend_hook.report()
    assert not ledger.modules


@pytest.mark.parametrize("form", ["script", "module"])
def test_program_that_python_started(form: str, python, write: Write, tmp_path: Path) -> None:
    write("train.py", "import graphmend_hook\n" + MENDABLE)
    words = ["train.py"] if form == "script" else ["-m", "train"]
    report = tmp_path / "report.json"
    ran = python(*words, GRAPHMEND_MODULES=str(tmp_path), GRAPHMEND_REPORT=str(report))
    assert ran.returncode == 0, ran.stderr
    (module,) = read_report(report).values()
    assert module["name"] == "__main__"
    assert (module["status"] == "imported too early") is (form == "module")
    if form == "script":
        assert module["status"] == "not eligible"
        assert "python -m graphmend_hook" in module["why"]
    ran = python("-m", "graphmend_hook", *words, GRAPHMEND_MODULES=str(tmp_path), GRAPHMEND_REPORT=str(report))
    assert json.loads(report.read_text())["modules"][0]["status"] == "mended", ran.stderr
