"""Finder, loader and installation: what is taken, what is left alone, and that nobody else notices."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import py_compile
import runpy
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from hook_cases import MENDABLE, PLAIN, Ran, is_mended, record

import graphmend_hook
from graphmend_hook import diagnostics
from graphmend_hook.diagnostics import ConfigError, DefectError, StrictError
from graphmend_hook.hook import allowlist
from graphmend_hook.hook import mender as mender_module
from graphmend_hook.hook.allowlist import Allowlist
from graphmend_hook.hook.cache import Cache
from graphmend_hook.hook.install import Hook
from graphmend_hook.hook.loader import MendingFinder
from graphmend_hook.product.report.ledger import Status, ledger
from graphmend_hook.product.report.text import as_text
from graphmend_hook.rules.defer.calls import EffectCall
from graphmend_hook.rules.defer.rewrite import Defer

Write = Callable[[str, str], Path]
Install = Callable[..., Hook]
Hooked = Callable[..., Ran]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
NOISY = "import sys\nsys.gm_runs = getattr(sys, 'gm_runs', 0) + 1\n" + MENDABLE


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    sys.__dict__.pop("gm_runs", None)


# What is taken


@pytest.mark.parametrize(
    ("modules", "deny", "mended"),
    [
        ("gmpkg", "", "gmpkg gmpkg.sub gmpkg.sub.model_a"),
        ("gmpkg.sub", "", "gmpkg.sub gmpkg.sub.model_a"),
        ("gmpkg.*.model_*", "", "gmpkg.sub.model_a"),
        ("gmpkg", "gmpkg.sub", "gmpkg"),
        ("{root}", "", "gmpkg gmpkg.sub gmpkg.sub.model_a gmpkg_extra"),
        ("{root}/gmpkg/sub", "", "gmpkg.sub gmpkg.sub.model_a"),
        ("{root}", "{root}/gmpkg", "gmpkg_extra"),
        ("{root}/nowhere", "", ""),
    ],
)
def test_patterns(modules: str, deny: str, mended: str, install: Install, write: Write, tmp_path: Path) -> None:
    names = ["gmpkg", "gmpkg.sub", "gmpkg.sub.model_a", "gmpkg_extra"]
    for file in ("gmpkg/__init__.py", "gmpkg/sub/__init__.py", "gmpkg/sub/model_a.py", "gmpkg_extra.py"):
        write(file, MENDABLE)
    install(modules.format(root=tmp_path), deny=deny.format(root=tmp_path))
    assert [name for name in names if is_mended(importlib.import_module(name))] == mended.split()
    assert list(ledger.modules) == mended.split()


def test_directory_on_the_path_below_a_pattern(
    install: Install, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``./project`` with ``./project/src`` on sys.path: top-level modules there lie below the directory too."""
    write("project/src/gm_deep.py", MENDABLE)
    monkeypatch.syspath_prepend(str(tmp_path / "project/src"))
    install(str(tmp_path / "project"))
    assert is_mended(importlib.import_module("gm_deep"))


class Editable:
    """As the finder of an editable install: knows where the sources of some modules are."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.files.get(fullname)
        return importlib.util.spec_from_file_location(fullname, file) if file else None


@pytest.mark.parametrize("pattern", ["gm_editable", "{root}/checkout"])
def test_editable_install(
    pattern: str, install: Install, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("checkout/src/gm_editable.py", MENDABLE)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Editable({"gm_editable": file})])
    install(pattern.format(root=tmp_path))
    module = importlib.import_module("gm_editable")
    assert is_mended(module)
    assert module.__file__ == str(file)


def test_namespace_package(install: Install, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("one", "two"):
        write(f"{part}/gm_space/{part}.py", MENDABLE)
        monkeypatch.syspath_prepend(str(tmp_path / part))
    install("gm_space")
    modules = [importlib.import_module(f"gm_space.{part}") for part in ("one", "two")]
    assert [is_mended(module) for module in modules] == [True, True]
    package = sys.modules.pop("gm_space")
    assert package.__spec__ is not None
    assert package.__spec__.origin is None
    assert len(list(package.__path__)) == 2
    assert "gm_space" not in ledger.modules


def test_symlinked_module(install: Install, write: Write, tmp_path: Path) -> None:
    write("store/original.py", MENDABLE)
    (tmp_path / "gm_link.py").symlink_to("store/original.py")
    install("gm_link")
    module = importlib.import_module("gm_link")
    assert is_mended(module)
    assert module.__file__ == module.f.__code__.co_filename == str(tmp_path / "gm_link.py")


def test_circular_imports(install: Install, write: Write) -> None:
    write("gm_left.py", "import gm_right\n" + NOISY + "right = gm_right.left\n")
    write("gm_right.py", "import gm_left as left\n" + NOISY)
    install("gm_left", "gm_right")
    left = importlib.import_module("gm_left")
    assert left.right is left
    assert is_mended(left)
    assert is_mended(left.gm_right)
    assert sys.gm_runs == 2  # type: ignore[attr-defined]


def test_reload(install: Install, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("gm_again.py", MENDABLE)
    install("gm_again")
    module = importlib.import_module("gm_again")
    write("gm_again.py", MENDABLE.replace("value", "newer value"))
    assert importlib.reload(module) is module
    module.f(3)
    assert capsys.readouterr().out == "newer value 3\n"
    assert is_mended(module)


def test_import_from_many_threads_runs_the_module_once(install: Install, write: Write) -> None:
    write("gm_threads.py", NOISY + "total = 0\nfor number in range(200_000):\n    total += number\ndone = True\n")
    install("gm_threads")
    start = threading.Barrier(8)
    seen = []

    def import_it() -> None:
        start.wait()
        module = importlib.import_module("gm_threads")
        seen.append((module.done, is_mended(module)))

    threads = [threading.Thread(target=import_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(True, True)] * 8
    assert sys.gm_runs == 1  # type: ignore[attr-defined]


def test_run_module(install: Install, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("gm_main/__init__.py", "")
    path = write("gm_main/__main__.py", MENDABLE + "if __name__ == '__main__':\n    f(4)\n")
    install("gm_main")
    names = runpy.run_module("gm_main", run_name="__main__")
    assert capsys.readouterr().out == "value 4\n"
    assert "_@graphmend" in names
    assert names["__file__"] == str(path)


# What is left alone


def test_zip_import(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("gm_zipped.py", MENDABLE)
    monkeypatch.syspath_prepend(str(tmp_path / "archive.zip"))
    install("gm_zipped")
    left_alone("gm_zipped", "zipimport.zipimporter")


def test_sourceless_module(install: Install, write: Write, tmp_path: Path) -> None:
    source = write("gm_bare.src", MENDABLE)
    py_compile.compile(str(source), cfile=str(tmp_path / "gm_bare.pyc"), doraise=True)
    install("gm_bare")
    left_alone("gm_bare", "SourcelessFileLoader")


def test_extension_module(install: Install, write: Write, tmp_path: Path) -> None:
    names = ("_json", "_heapq", "_queue", "_bisect")
    origins = [spec.origin for name in names if (spec := importlib.util.find_spec(name)) and spec.origin]
    files = [Path(origin) for origin in origins if os.path.isfile(origin)]
    if not files:
        pytest.skip("this python has no extension module in a file")
    write("gm_native/__init__.py", "")
    (tmp_path / "gm_native" / files[0].name).symlink_to(files[0])
    install("gm_native")
    left_alone("gm_native." + files[0].name.partition(".")[0], "ExtensionFileLoader")


class OtherLoader(SourceFileLoader):
    """The loader of somebody else's import hook, with code of its own."""

    def source_to_code(self, data, path, *, _optimize=-1):  # type: ignore[no-untyped-def]
        return super().source_to_code(bytes(data).replace(b"value", b"theirs"), path)


class OtherHook:
    """Somebody else's hook, which asks all finders for the spec, as ours does.

    guarded: it takes care not to ask itself; without that, only our own care ends the recursion.
    """

    def __init__(self, name: str, guarded: bool) -> None:
        self.name, self.guarded = name, guarded
        self.asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name or (self.guarded and self.asking):
            return None
        self.asking = True
        try:
            for finder in sys.meta_path:
                if finder is not self and (spec := finder.find_spec(fullname, path, target)):
                    spec.loader = OtherLoader(fullname, spec.origin or "")
                    return spec
            return None
        finally:
            self.asking = False


def test_loader_of_another_hook(install: Install, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("gm_theirs.py", MENDABLE)

    class Theirs:
        @staticmethod
        def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
            spec = PathFinder.find_spec(fullname)
            if fullname == "gm_theirs" and spec is not None:
                spec.loader = OtherLoader(fullname, spec.origin or "")
                return spec
            return None

    monkeypatch.setattr(sys, "meta_path", [Theirs, *sys.meta_path])
    install("gm_theirs")
    left_alone("gm_theirs", "OtherLoader")


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_hook_that_asks_all_finders(
    guarded: bool,
    first: bool,
    install: Install,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever is first in the path: the import ends, and their loader runs the module, once."""
    write("gm_both.py", NOISY)
    other = OtherHook("gm_both", guarded)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    if not first:
        sys.meta_path.insert(0, other)
    install("gm_both")
    if first:
        sys.meta_path.insert(0, other)
    importlib.import_module("gm_both").f(1)
    assert capsys.readouterr().out == "theirs 1\n"
    assert sys.gm_runs == 1  # type: ignore[attr-defined]


def test_missing_module(install: Install) -> None:
    install("gm_missing")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gm_missing'$"):
        importlib.import_module("gm_missing")


def left_alone(name: str, loader: str) -> None:
    module = importlib.import_module(name)
    assert not is_mended(module)
    found = record(name)
    assert (found.status, found.path) == (Status.NOT_ELIGIBLE, module.__file__)
    assert loader in found.why
    assert f"  1 module: {found.why}\n    {name} (" in as_text(ledger)


def test_a_module_that_no_compiled_function_reaches_is_passed_over(
    write: Write, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowlist, "PASSED_OVER", ("gm_library.tokens",))
    write("gm_library/__init__.py", "")
    write("gm_library/tokens.py", MENDABLE)
    install("gm_library")
    module = importlib.import_module("gm_library.tokens")
    assert not is_mended(module)
    assert record("gm_library.tokens").status is Status.PASSED_OVER
    assert "passed over" in as_text(ledger)


def test_assertion_rewriting_of_pytest(write: Write, python: Python, tmp_path: Path) -> None:
    """Test modules keep their rewritten assertions; the modules that they import are mended."""
    write("app.py", MENDABLE)
    write("conftest.py", "import graphmend_hook\n")
    write("test_it.py", "import app\n\ndef test_fails():\n    print('never deferred')\n    assert app.f(1) == 2\n")
    report = tmp_path / "report.json"
    ran = python(
        *["-m", "pytest", "-p", "no:cacheprovider", "-q"], GRAPHMEND_MODULES=str(tmp_path), GRAPHMEND_REPORT=str(report)
    )
    assert ran.returncode == 1, ran.stderr
    assert "where 1 = <function f at" in ran.stdout
    modules = {module["name"]: module for module in json.loads(report.read_text())["modules"]}
    assert modules["app"]["status"] == "mended"
    assert modules["test_it"]["status"] == "not eligible"
    assert "AssertionRewritingHook" in modules["test_it"]["why"]


# Nobody notices


FACTS = """
import doctest, gzip, importlib, importlib.resources, inspect, json, linecache, pickle, pkgutil, sys, traceback
import pkg.app as app, pkg

def trace(call):
    try:
        call()
    except BaseException:
        return traceback.format_exc()

class Bad:
    def __str__(self):
        raise ValueError("no text")

code = app.f.__code__
facts = {
    "source of module": inspect.getsource(app),
    "source of function": inspect.getsource(app.f),
    "source of class": inspect.getsource(app.C),
    "source of the loader": app.__loader__.get_source("pkg.app"),
    "is package": [pkg.__loader__.is_package("pkg"), app.__loader__.is_package("pkg.app")],
    "files": [inspect.getfile(app), app.__file__, app.__cached__, app.__spec__.origin, app.__spec__.cached],
    "spec": [app.__spec__.name, app.__spec__.parent, app.__spec__.has_location, app.__package__, pkg.__path__],
    "data": pkgutil.get_data("pkg", "data.txt").decode(),
    "resource": importlib.resources.files(pkg).joinpath("data.txt").read_text(),
    "code": [code.co_filename, code.co_firstlineno, code.co_name, code.co_argcount, code.co_flags],
    "signature": [str(inspect.signature(app.f)), app.f.__doc__, app.__doc__, app.f.__annotations__],
    "modules below": [info.name for info in pkgutil.walk_packages(pkg.__path__, "pkg.")],
    "pickle": [list(pickle.dumps(app.C())), type(pickle.loads(pickle.dumps(app.C()))) is app.C],
    "doctest": list(doctest.testmod(app)),
    "raised by a print": trace(lambda: app.f(Bad())),
    "raised below": trace(lambda: app.g(0)),
    "syntax error": trace(lambda: exec("import pkg.wrong")),
    "raised at import": trace(lambda: exec("import pkg.fails")),
    "not found": trace(lambda: exec("import pkg.missing")),
    "is a source loader": isinstance(app.__loader__, importlib.machinery.SourceFileLoader),
    "names": sorted(name for name in vars(app) if "@" not in name),
}
print(json.dumps(facts))
"""
APP = '''\
"""The module.

>>> f(2)
value 2
2
"""
from __future__ import annotations


def f(
    x: int,
    *,
    y=1,
):
    """The function."""
    if y:
        print(
            "value",
            x,
        )
    return x


class C:
    def m(self):
        print(self); return 1


def g(x):
    print("before")
    return 1 / x
'''


@pytest.fixture
def _app_package(write: Write) -> None:
    write("pkg/__init__.py", PLAIN)
    write("pkg/app.py", APP)
    write("pkg/data.txt", "text of the data")
    write("pkg/wrong.py", "def f(:\n    print('x')\n")
    write("pkg/fails.py", "def f():\n    print('x')\n    return 1 / 0\n\nf()\n")


@pytest.mark.usefixtures("_app_package")
@pytest.mark.parametrize("flags", [(), ("-O",), ("-OO",)], ids=lambda flags: "".join(flags) or "plain")
def test_facts_are_those_of_the_stock_import(flags: tuple[str, ...], hooked: Hooked) -> None:
    stock = json.loads(hooked(FACTS, *flags, GRAPHMEND_MODULES="").stdout.splitlines()[-1])
    assert stock["syntax error"].endswith("SyntaxError: invalid syntax\n")
    for cached in (False, True):
        ran = hooked(FACTS, *flags, GRAPHMEND_MODULES="pkg")
        assert (ran.modules["pkg.app"]["status"], ran.modules["pkg.app"]["cached"]) == ("mended", cached)
        assert (ran.modules["pkg.fails"]["status"]) == "mended"
        facts = json.loads(ran.stdout.splitlines()[-1])
        for name, fact in stock.items():
            assert facts[name] == fact, name


@pytest.mark.usefixtures("_app_package")
def test_uncaught_error_looks_as_without_the_hook(python: Python) -> None:
    for module in ("pkg.wrong", "pkg.fails", "pkg.missing"):
        code = f"import graphmend_hook\nimport {module}"
        stock, mended = (python("-c", code, GRAPHMEND_MODULES=modules) for modules in ("", "pkg"))
        assert stock.returncode == mended.returncode == 1
        assert mended.stderr == stock.stderr


EVENTS = """
import sys, app
seen = []
def trace(frame, event, arg):
    if frame.f_code.co_filename == app.__file__:
        seen.append((frame.f_code.co_name, event, frame.f_lineno))
        return trace
sys.settrace(trace)
app.f(1)
sys.settrace(None)
print(seen)
"""


@pytest.mark.parametrize(
    "call",
    [
        "print('value', x)",
        "print(\n        'value',\n        x,\n    )",
    ],
    ids=["one line", "four lines"],
)
def test_line_events_are_those_of_the_stock_import(call: str, hooked: Hooked, write: Write) -> None:
    """What debuggers and coverage see of an eager call."""
    write("app.py", f"def f(x):\n    {call}\n    return x\n\n\nf(0)\n")
    stock = hooked(EVENTS, GRAPHMEND_MODULES="").stdout
    mended = hooked(EVENTS)
    assert mended.modules["app"]["status"] == "mended"
    assert mended.stdout == stock


# Errors of ours


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Defer, "match"), (EffectCall, "emit"), (Cache, "get"), (Cache, "put"), (mender_module, "rewrite")],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.parametrize("error", [RuntimeError("of ours"), RecursionError(), MemoryError()], ids=repr)
def test_error_of_ours_leaves_the_module_as_it_is(
    owner: object,
    name: str,
    error: Exception,
    install: Install,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("gm_unlucky.py", NOISY)

    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(owner, name, fail)
    install("gm_unlucky")
    module = importlib.import_module("gm_unlucky")
    module.f(5)
    assert capsys.readouterr().out == "value 5\n"
    assert not is_mended(module)
    assert sys.gm_runs == 1  # type: ignore[attr-defined]
    assert record("gm_unlucky").status is Status.FAILED
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage().startswith("GM002: gm_unlucky runs unmended: mending it failed with ")
    assert "GRAPHMEND_DENY=gm_unlucky" in warning.getMessage()


def test_one_failure_of_many_modules_is_said_once(
    install: Install, write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"gm_unlucky_{number}" for number in range(3)]

    def fail(*args: object) -> None:
        raise RuntimeError("the same")

    monkeypatch.setattr(mender_module, "rewrite", fail)
    for name in names:
        write(f"{name}.py", NOISY)
    install(*names)
    for name in names:
        importlib.import_module(name)
    assert [record(name).status for name in names] == [Status.FAILED] * 3
    assert [said.getMessage().split()[1] for said in caplog.records if said.levelno == logging.WARNING] == names[:1]


def test_syntax_error_is_that_of_python(install: Install, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("gm_wrong.py", "print('x')\nif x = 1: pass\n")
    install("gm_wrong")
    with pytest.raises(SyntaxError) as raised:
        importlib.import_module("gm_wrong")
    with pytest.raises(SyntaxError) as stock:
        compile(path.read_text(), str(path), "exec")
    assert raised.value.args == stock.value.args
    assert (caplog.records, ledger.modules) == ([], {})


def test_source_that_cannot_be_decoded(install: Install, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number, source in enumerate([b"print('\xff')\n", b"# coding: nonsense\nprint(1)\n", b"print(1)\0\n"]):
        (tmp_path / f"gm_bytes{number}.py").write_bytes(b"def f():\n    print(1)\n" + source if number != 1 else source)
        install(f"gm_bytes{number}")
        with pytest.raises((SyntaxError, ValueError)) as raised:
            importlib.import_module(f"gm_bytes{number}")
        graphmend_hook.uninstall()
        importlib.invalidate_caches()
        with pytest.raises(type(raised.value)) as stock:
            importlib.import_module(f"gm_bytes{number}")
        assert str(raised.value) == str(stock.value)
        assert not is_in_ledger_as_mended(f"gm_bytes{number}")


def is_in_ledger_as_mended(name: str) -> bool:
    return name in ledger.modules and ledger.modules[name].status is Status.MENDED


# Installing


def finders() -> list[MendingFinder]:
    return [finder for finder in sys.meta_path if isinstance(finder, MendingFinder)]


def test_install_twice_is_one_hook(install: Install) -> None:
    first = install("gm_one")
    assert install("gm_one") is first
    assert len(finders()) == 1
    assert sys.meta_path[0] is finders()[0]
    assert install("gm_one", "gm_two") is not first
    assert len(finders()) == 2
    graphmend_hook.uninstall()
    assert finders() == []


def test_uninstall_and_install_again(install: Install, write: Write) -> None:
    for name in ("gm_first", "gm_second", "gm_third"):
        write(f"{name}.py", MENDABLE)
    hook = install("gm_first", "gm_second", "gm_third")
    first = importlib.import_module("gm_first")
    hook.uninstall()
    hook.uninstall()
    assert not hook.installed
    second = importlib.import_module("gm_second")
    with install("gm_first", "gm_second", "gm_third") as again:
        assert again is not hook
        assert again.installed
        third = importlib.import_module("gm_third")
    assert not again.installed
    assert [is_mended(module) for module in (first, second, third)] == [True, False, True]
    assert record("gm_second").status is Status.TOO_EARLY


def test_finder_removed_by_somebody_else(install: Install) -> None:
    hook = install("gm_one")
    sys.meta_path.remove(finders()[0])
    assert not hook.installed
    assert install("gm_one").installed
    hook.uninstall()


@pytest.mark.parametrize(
    "patterns",
    [
        [["gm_shared"], ["gm_shared", "gm_other"]],
        [["gm_shared", "gm_other"], ["gm_shared"]],
        [["{root}"], ["gm_shared"]],
        [["gm_shared"], ["{root}"]],
    ],
)
def test_two_hooks_mend_once(
    patterns: list[list[str]], install: Install, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("gm_shared.py", NOISY)
    for modules in patterns:
        install(*(pattern.format(root=tmp_path) for pattern in modules))
    calls = []
    stock = mender_module.rewrite
    monkeypatch.setattr(mender_module, "rewrite", lambda *args: calls.append(1) or stock(*args))
    module = importlib.import_module("gm_shared")
    assert is_mended(module)
    assert (len(calls), sys.gm_runs) == (1, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("newest", ["name", "directory"])
def test_a_hook_that_declines_does_not_hide_the_module_from_another(
    newest: str, install: Install, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory pattern is only decided once the file is known: here it is not the file of that name there."""
    write("project/gm_shadowed.py", PLAIN)
    write("gm_shadowed.py", MENDABLE)
    patterns = ["gm_shadowed", str(tmp_path / "project")]
    for pattern in patterns if newest == "directory" else reversed(patterns):
        install(pattern)
    assert is_mended(importlib.import_module("gm_shadowed"))


def test_imported_too_early(install: Install, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("gm_early", "gm_early2", "gm_late"):
        write(f"{name}.py", MENDABLE)
    early = importlib.import_module("gm_early")
    install("gm_early", "gm_late")
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage().startswith("GM001: gm_early was imported before graphmend_hook was installed")
    assert not is_mended(early)
    assert record("gm_early").status is Status.TOO_EARLY
    assert is_mended(importlib.import_module("gm_late"))
    importlib.import_module("gm_early2")
    install("gm_early", "gm_early2", "gm_late")
    assert "GM001: gm_early (and 1 more) was" in caplog.messages[-1]
    assert record("gm_late").status is Status.MENDED


def test_imported_too_early_is_an_error_in_strict_mode(install: Install, write: Write) -> None:
    write("gm_strict.py", MENDABLE)
    importlib.import_module("gm_strict")
    for _ in range(2):
        with pytest.raises(StrictError, match=r"^GM001: gm_strict was imported before"):
            install("gm_strict", strict=True)
        assert finders() == []


def test_reload_mends_what_was_imported_too_early(install: Install, write: Write) -> None:
    write("gm_late.py", MENDABLE)
    module = importlib.import_module("gm_late")
    install("gm_late")
    assert is_mended(importlib.reload(module))
    assert record("gm_late").status is Status.MENDED


# The environment


SHOW = "import graphmend_hook, sys; print(len([f for f in sys.meta_path if 'graphmend' in type(f).__module__]))"


@pytest.mark.parametrize(
    ("env", "hooks"),
    [
        ({}, 0),
        ({"GRAPHMEND_MODULES": ""}, 0),
        ({"GRAPHMEND_MODULES": " , "}, 0),
        ({"GRAPHMEND_MODULES": "app"}, 1),
        ({"GRAPHMEND_MODULES": "app", "GRAPHMEND_DISABLE": "1"}, 0),
        ({"GRAPHMEND_MODULES": "no module!", "GRAPHMEND_RULES": "bogus", "GRAPHMEND_DISABLE": "yes"}, 0),
        ({"GRAPHMEND_MODULES": "app", "GRAPHMEND_DISABLE": "0"}, 1),
    ],
)
def test_import_installs_if_modules_are_set(env: dict[str, str], hooks: int, python: Python) -> None:
    ran = python("-c", SHOW, **env)
    assert (ran.stdout, ran.stderr) == (f"{hooks}\n", "")


def test_disabled(write: Write, hooked: Hooked, cache_dir: Path) -> None:
    write("app.py", MENDABLE)
    code = "hook = graphmend_hook.install('app'); import app; print(hook.installed, '_@graphmend' in vars(app))"
    ran = hooked(code, GRAPHMEND_DISABLE="1", GRAPHMEND_STRICT="1", GRAPHMEND_LOG="info")
    assert ran.stdout == "False False\n"
    assert {line.partition("] ")[2].split(":")[0] for line in ran.stderr.splitlines()} == {"INFO GM007"}
    assert ran.modules == {}
    assert not cache_dir.exists()


def test_import_alone_is_light(python: Python) -> None:
    heavy = "torch bytecode ast inspect tokenize logging hashlib platformdirs argparse transformers"
    code = "import sys\nfor name in {0!r}.split(): sys.modules.pop(name, None)\nbefore = set(sys.modules)\n"
    code += "import graphmend_hook\nnew = set(sys.modules) - before\nprint(*sorted(new & set({0!r}.split())))\n"
    code += "print(*sorted(name for name in new if name.startswith('graphmend_hook.')))"
    ran = python("-S", "-c", f"import sys; sys.path.insert(0, {str(package_parent())!r})\n" + code.format(heavy))
    assert ran.stdout == "\ngraphmend_hook.version\n", ran.stderr


def test_installation_alone_imports_neither_torch_nor_bytecode(python: Python) -> None:
    code = (
        "import graphmend_hook, sys; print(*sorted({'torch', 'bytecode'} & set(sys.modules)), len(sys.meta_path) > 3)"
    )
    assert python("-c", code, GRAPHMEND_MODULES="app").stdout == "True\n"


def package_parent() -> Path:
    return Path(graphmend_hook.__file__).parent.parent


def test_nothing_is_imported_inside_an_import(write: Write, python: Python, tmp_path: Path) -> None:
    """An import inside a finder can deadlock with another thread's, so all of ours happen at installation."""
    write("app.py", MENDABLE)
    code = (
        "import graphmend_hook, sys; before = set(sys.modules); import app; print(*sorted(set(sys.modules) - before))"
    )
    settings = {"GRAPHMEND_MODULES": "app", "GRAPHMEND_CACHE_DIR": "", "HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    for _ in range(2):
        assert python("-c", code, **settings).stdout == "app\n"
    assert list(tmp_path.glob(".cache/graphmend_hook/*/app*"))


@pytest.fixture
def _not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a user's process."""
    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    monkeypatch.setattr(diagnostics, "_said", set())


def failing(*_: object) -> None:
    raise MemoryError("ours")


@pytest.mark.usefixtures("_not_fatal")
@pytest.mark.parametrize("name", ["may_cover", "covers", "passes_over"])
def test_error_of_ours_while_looking_leaves_the_import_alone(
    name: str, install: Install, write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("gm_one", "gm_two"):
        write(f"{module}.py", NOISY)
    install("gm_one", "gm_two")
    monkeypatch.setattr(Allowlist, name, failing)
    assert not any(is_mended(importlib.import_module(module)) for module in ("gm_one", "gm_two"))
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("GM012: the import hook looking for ")
    assert "MemoryError('ours'); the program goes on as without the hook" in said


def test_error_of_ours_while_looking_is_fatal_in_tests(
    install: Install, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("gm_one.py", NOISY)
    install("gm_one")
    with monkeypatch.context() as patched, pytest.raises(DefectError, match="looking for gm_one failed"):
        patched.setattr(Allowlist, "covers", failing)
        importlib.import_module("gm_one")


@pytest.mark.usefixtures("_not_fatal")
def test_error_of_another_finder_is_raised_as_without_the_hook(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        asked = 0

        def find_spec(self, fullname: str, *_: object) -> None:
            if fullname == "gm_broken":
                self.asked += 1
                raise RuntimeError("theirs")

    broken = Broken()
    monkeypatch.setattr(sys, "meta_path", [broken, *sys.meta_path])
    install("gm_broken")
    with pytest.raises(RuntimeError, match=r"^theirs$"):
        importlib.import_module("gm_broken")
    assert broken.asked == 1
    assert caplog.records == []


@pytest.mark.usefixtures("_not_fatal")
def test_error_of_ours_at_the_start_leaves_the_program_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRAPHMEND_MODULES", "gm_one")
    monkeypatch.setattr("graphmend_hook.hook.install.install_settings", failing)
    graphmend_hook._install_from_environment()
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("GM012: the start of the hook from GRAPHMEND_MODULES failed with MemoryError")
    monkeypatch.setenv("GRAPHMEND_RULES", "bogus")
    with pytest.raises(ConfigError):  # what the user can mend
        graphmend_hook._install_from_environment()
