"""Modules and scripts that are loaded by their place: `spec_from_file_location`, `runpy.run_path`."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import py_compile
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from hook_cases import MENDABLE, PLAIN, is_mended, record

import graphmend_hook
from graphmend_hook.diagnostics import DefectError
from graphmend_hook.hook.install import Hook
from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.product.report.ledger import Status, ledger

Write = Callable[[str, str], Path]
Install = Callable[..., Hook]


def load(name: str, path: Path, **options: object) -> ModuleType:
    """What transformers does with a module of a model's own."""
    spec = importlib.util.spec_from_file_location(name, path, **options)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("pattern", ["gm_plugin", "gm_*", "{root}", "{root}/gm_plugin.py"])
def test_covered_module_is_mended(pattern: str, install: Install, write: Write, tmp_path: Path) -> None:
    path = write("gm_plugin.py", MENDABLE)
    install(pattern.format(root=tmp_path))
    module = load("gm_plugin", path)
    assert is_mended(module)
    assert record("gm_plugin").status is Status.MENDED
    assert module.__file__ == str(path)
    assert module.__spec__.cached == importlib.util.cache_from_source(str(path))


@pytest.mark.parametrize("pattern", ["gm_other", "{root}/elsewhere", "{root}/gm_plugin.pyx", "{root}/gm_plug"])
def test_another_module_is_not(pattern: str, install: Install, write: Write, tmp_path: Path) -> None:
    path = write("gm_plugin.py", MENDABLE)
    install(pattern.format(root=tmp_path))
    module = load("gm_plugin", path)
    assert not is_mended(module)
    assert type(module.__spec__.loader) is SourceFileLoader
    assert "gm_plugin" not in ledger.modules


def test_denied_module_is_not(install: Install, write: Write, tmp_path: Path) -> None:
    path = write("gm_plugin.py", MENDABLE)
    install("gm_plugin", deny=str(path))
    assert not is_mended(load("gm_plugin", path))


def test_loader_of_another_kind_is_left_alone_and_reported(install: Install, write: Write) -> None:
    class Theirs(SourceFileLoader):
        pass

    path = write("gm_plugin.py", MENDABLE)
    install("gm_plugin")
    theirs = Theirs("gm_plugin", str(path))
    module = load("gm_plugin", path, loader=theirs)
    assert module.__spec__.loader is theirs
    assert record("gm_plugin").status is Status.NOT_ELIGIBLE
    assert "Theirs" in record("gm_plugin").why


@pytest.mark.parametrize("change", ["none", "path", "patched"])
def test_plain_loader_of_the_programs_own_is_left_alone(change: str, install: Install, write: Write) -> None:
    """It may be for another file than the spec, and have attributes of its own."""
    path = write("gm_plugin.py", MENDABLE)
    other = write("gm_other.py", "found = 'other'")
    install("gm_plugin")
    theirs = SourceFileLoader("gm_plugin", str(other if change == "path" else path))
    if change == "patched":
        theirs.get_code = lambda name: compile("found = 'patched'", "x", "exec")  # type: ignore[method-assign]
    module = load("gm_plugin", path, loader=theirs)
    assert module.__spec__.loader is theirs
    assert getattr(module, "found", "none") == {"path": "other"}.get(change, change)
    assert "mend it by graphmend_hook.mend" in record("gm_plugin").why


def test_every_way_to_call_it(install: Install, write: Write) -> None:
    path = write("gm_plugin.py", MENDABLE)
    install("gm_plugin")
    for spec in (
        importlib.util.spec_from_file_location("gm_plugin", path),
        importlib.util.spec_from_file_location("gm_plugin", location=path),
        importlib.util.spec_from_file_location(name="gm_plugin", location=path),
    ):
        assert isinstance(spec.loader, MendingLoader)
    assert importlib.util.spec_from_file_location(name="json", location=path).loader.name == "json"


def test_module_with_nothing_to_mend(install: Install, write: Write) -> None:
    path = write("gm_plugin.py", PLAIN)
    install("gm_plugin")
    load("gm_plugin", path)
    assert record("gm_plugin").status is Status.UNCHANGED


def test_package(install: Install, write: Write) -> None:
    """A package that is loaded by its place, and what it imports of itself."""
    path = write("elsewhere/__init__.py", MENDABLE + "from . import inner\n")
    write("elsewhere/inner.py", MENDABLE)
    install("gm_package")
    spec = importlib.util.spec_from_file_location("gm_package", path, submodule_search_locations=[str(path.parent)])
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gm_package"] = module
    spec.loader.exec_module(module)
    assert is_mended(module)
    assert is_mended(module.inner)


def test_finder_that_makes_its_specs_by_place(install: Install, write: Write) -> None:
    """As finders of editable installs do: whichever is asked first, the module is mended once."""
    path = write("elsewhere/code.py", MENDABLE)

    class Editable:
        @staticmethod
        def find_spec(name: str, *_: object) -> object:
            return importlib.util.spec_from_file_location(name, path) if name == "gm_editable" else None

    install("gm_editable")
    for place in (0, len(sys.meta_path)):
        sys.meta_path.insert(place, Editable)
        try:
            assert is_mended(importlib.import_module("gm_editable"))
        finally:
            sys.meta_path.remove(Editable)
            sys.modules.pop("gm_editable", None)
        assert record("gm_editable").status is Status.MENDED


def test_no_spec_stays_no_spec(install: Install) -> None:
    install("gm_plugin")
    assert importlib.util.spec_from_file_location("gm_plugin") is None
    assert importlib.util.spec_from_file_location("gm_plugin", "no/such/file.txt") is None
    with pytest.raises(TypeError, match="spec_from_file_location"):
        importlib.util.spec_from_file_location()


def test_error_of_ours_leaves_the_spec(install: Install, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    path = write("gm_plugin.py", MENDABLE)
    install("gm_plugin")
    monkeypatch.setattr(MendingLoader, "__init__", None)
    assert not is_mended(load("gm_plugin", path))
    monkeypatch.setenv("_GRAPHMEND_DEFECTS", "raise")
    with pytest.raises(DefectError):
        load("gm_plugin", path)


# What is left behind


def test_functions_are_wrapped_while_a_hook_is_installed(install: Install) -> None:
    def functions() -> tuple[object, object]:
        return importlib.util.spec_from_file_location, runpy._get_code_from_file

    before = functions()
    first, second = install("gm_a"), install("gm_b")
    wrapped = functions()
    assert not set(before) & set(wrapped)
    assert [each.__name__ for each in wrapped] == [each.__name__ for each in before]
    first.uninstall()
    assert functions() == wrapped
    second.uninstall()
    assert functions() == before


def test_wrapper_of_others_stays(install: Install, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("gm_plugin.py", MENDABLE)
    hook = install("gm_plugin")
    ours = importlib.util.spec_from_file_location
    monkeypatch.setattr(importlib.util, "spec_from_file_location", functools.partial(ours))
    theirs = importlib.util.spec_from_file_location
    hook.uninstall()
    assert importlib.util.spec_from_file_location is theirs
    assert not is_mended(load("gm_plugin", path))
    assert is_mended_again(install, path)


def is_mended_again(install: Install, path: Path) -> bool:
    install("gm_plugin")
    return is_mended(load("gm_plugin", path))


# Scripts


def test_script_that_runpy_runs(install: Install, write: Write, tmp_path: Path) -> None:
    path = write("train.py", MENDABLE)
    install(str(tmp_path))
    namespace = runpy.run_path(str(path), run_name="__mp_main__")
    assert "_@graphmend" in namespace
    assert isinstance(namespace["f"], FunctionType)
    assert namespace["f"].__code__.co_filename == str(path)
    assert record("train.py").status is Status.MENDED


@pytest.mark.parametrize("deny", ["__main__", "{root}"])
def test_script_that_is_not_covered(deny: str, install: Install, write: Write, tmp_path: Path) -> None:
    path = write("train.py", MENDABLE)
    install(str(tmp_path), deny=deny.format(root=tmp_path))
    assert "_@graphmend" not in runpy.run_path(str(path))
    graphmend_hook.uninstall()
    install("train")
    assert "_@graphmend" not in runpy.run_path(str(path))


def test_script_in_bytecode(install: Install, write: Write, tmp_path: Path) -> None:
    path = tmp_path / "train.pyc"
    py_compile.compile(str(write("source.py", MENDABLE)), str(path))
    install(str(tmp_path))
    assert "_@graphmend" not in runpy.run_path(str(path))
    assert not ledger.modules


def test_error_of_ours_leaves_the_script(install: Install, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> CodeType:
        raise MemoryError

    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    path = write("train.py", MENDABLE)
    install(str(path))
    monkeypatch.setattr(Mender, "mend", fail)
    assert "_@graphmend" not in runpy.run_path(str(path))
