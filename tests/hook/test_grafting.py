"""Loaders of other hooks: where they leave a function as it was written, it is mended, and they do what they did."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from unittest.mock import patch

import pytest
from hook_cases import MENDABLE, entries, record

import graphmend_hook
from graphmend_hook.hook.install import Hook
from graphmend_hook.hook.reach import grafting
from graphmend_hook.product.report.ledger import Status, ledger

Write = Callable[[str, str], Path]
Install = Callable[..., Hook]
TEXT = (
    MENDABLE
    + """
class C:
    def g(self, x: int):
        print("g", x)
        return lambda: print("inner")

def h(x: int):
    print("h", x)
    return x
"""
)
seen: list[str] = []


def decorate(function: Callable[..., object]) -> Callable[..., object]:
    def wrapper(*args: object) -> object:
        seen.append(function.__qualname__)
        return function(*args)

    wrapper.__wrapped__ = function  # type: ignore[attr-defined]
    return wrapper


class Decorating(SourceFileLoader):
    """As jaxtyping and beartype do: a decorator on each function, a cache of its own."""

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                self.change(node)
        tree.body.insert(0, ast.parse(f"from {__name__} import decorate").body[0])
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    @staticmethod
    def change(node: ast.FunctionDef) -> None:
        node.decorator_list.append(ast.copy_location(ast.Name("decorate", ast.Load()), node))

    def exec_module(self, module: ModuleType) -> None:
        def own_cache(path: str, *_args: object, **_kwargs: object) -> str:
            return f"{path}.theirs"

        with patch("importlib._bootstrap_external.cache_from_source", own_cache):
            super().exec_module(module)


class Instrumenting(Decorating):
    """As typeguard does: a check into each function that has an annotation."""

    @staticmethod
    def change(node: ast.FunctionDef) -> None:
        if any(each.annotation for each in node.args.args):
            node.body.insert(0, ast.copy_location(ast.parse(f"decorate({node.name!r})").body[0], node))


class Deaf(Decorating):
    """A loader that does not ask its `get_code`."""

    def exec_module(self, module: ModuleType) -> None:
        exec(self.source_to_code(self.get_data(self.path), self.path), vars(module))


class Unchanged(SourceFileLoader):
    """As beartype's is for packages that nobody has named."""


@pytest.fixture
def importing(fresh_imports: Path, write: Write) -> Iterator[Callable[[type], ModuleType]]:
    """Import a module of `TEXT` by a loader of another hook, which is asked after ours."""
    write("gm_theirs.py", TEXT)
    added = []

    def run(loader: type) -> ModuleType:
        files = FileFinder(str(fresh_imports), (loader, [".py"]))
        finder = SimpleNamespace(find_spec=lambda name, *_: files.find_spec(name))
        added.append(finder)
        sys.meta_path.insert(1, finder)
        return importlib.import_module("gm_theirs")

    yield run
    for finder in added:
        sys.meta_path.remove(finder)


def mended(module: ModuleType) -> dict[str, bool]:
    functions = {"f": module.f, "g": module.C.__dict__["g"], "h": module.h}
    own = {name: getattr(function, "__wrapped__", function) for name, function in functions.items()}
    assert all(isinstance(function, FunctionType) for function in own.values())
    return {name: "_@graphmend" in function.__code__.co_names for name, function in own.items()}


@pytest.mark.parametrize("loader", [Decorating, Unchanged])
def test_both_do_their_work(loader: type, importing, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("gm_theirs")
    seen.clear()
    module = importing(loader)
    assert type(module.__spec__.loader) is loader
    assert mended(module) == {"f": True, "g": True, "h": True}
    assert (record("gm_theirs").status, record("gm_theirs").why) == (Status.MENDED, "")
    assert len(record("gm_theirs").sites) == 3
    module.f(1), module.C().g(2)(), module.h(3)
    assert capsys.readouterr().out == "value 1\ng 2\ninner\nh 3\n"
    assert seen == (["f", "C.g", "h"] if loader is Decorating else [])


def test_functions_that_theirs_has_changed_stay_theirs(importing, install: Install) -> None:
    install("gm_theirs")
    module = importing(Instrumenting)
    assert mended(module) == {"f": True, "g": False, "h": False}
    made = record("gm_theirs")
    assert (made.status, [site.function for site in made.sites]) == (Status.MENDED, ["f"])
    assert made.why.startswith(
        f"GM016: C.g, h of gm_theirs runs unmended: {__name__}.Instrumenting has changed its code"
    )
    assert "GM016, 1 site: C.g, h of gm_theirs" in graphmend_hook.report()


def test_loader_that_is_not_reached(importing, install: Install) -> None:
    install("gm_theirs")
    assert mended(importing(Deaf)) == {"f": False, "g": False, "h": False}
    assert record("gm_theirs").status is Status.NOT_ELIGIBLE
    assert "Deaf" in record("gm_theirs").why


def test_their_cache_holds_what_is_theirs(importing, install: Install, fresh_imports: Path, cache_dir: Path) -> None:
    """From their own bytecode, too, the functions are mended; without our hook it is theirs alone."""
    hook = install("gm_theirs")
    importing(Decorating)
    assert (fresh_imports / "gm_theirs.py.theirs").exists()
    assert len(entries(cache_dir)) == 1
    for installed in (True, False):
        if not installed:
            hook.uninstall()
        del sys.modules["gm_theirs"]
        with patch.object(Decorating, "source_to_code", side_effect=AssertionError):
            module = importlib.import_module("gm_theirs")
        assert mended(module) == dict.fromkeys("fgh", installed)


def test_denied_module_is_theirs_alone(importing, install: Install) -> None:
    install("gm_theirs", deny="gm_theirs")
    module = importing(Decorating)
    assert mended(module) == dict.fromkeys("fgh", False)
    assert not ledger.modules


def test_error_of_ours_leaves_theirs(importing, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> CodeType:
        raise MemoryError

    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    monkeypatch.setattr(grafting, "Twins", fail)
    install("gm_theirs")
    assert mended(importing(Decorating)) == dict.fromkeys("fgh", False)


def test_late_mending_of_what_theirs_has_loaded(importing, install: Install) -> None:
    """What the report advises where theirs was asked first."""
    module = importing(Decorating)
    graphmend_hook.mend(module)
    assert mended(module) == dict.fromkeys("fgh", True)


def test_finder_that_gives_out_one_loader(install: Install, write: Write, fresh_imports: Path) -> None:
    """Again and again, for two modules, and after our hook is gone."""
    texts = {name: write(f"{name}.py", MENDABLE.replace("value", name)) for name in ("gm_one", "gm_two")}

    class Shared(SourceFileLoader):
        def get_filename(self, name: str | None = None) -> str:  # type: ignore[override]
            return str(texts[name or "gm_one"])

        def get_code(self, fullname: str = "gm_one") -> CodeType:
            return compile(texts[fullname].read_text(), str(texts[fullname]), "exec")

    shared = Shared("gm_one", str(texts["gm_one"]))

    def find(name: str, *_: object) -> object:
        return importlib.util.spec_from_loader(name, shared) if name in texts else None

    finder = SimpleNamespace(find_spec=find)
    hook = install("gm_one", "gm_two")
    sys.meta_path.append(finder)
    try:
        for _ in range(1100):
            importlib.util.find_spec("gm_two")
        for name, path in texts.items():
            module = importlib.import_module(name)
            assert "_@graphmend" in module.f.__code__.co_names
            assert (record(name).status, record(name).path, record(name).why) == (Status.MENDED, str(path), "")
        assert shared.get_code() is not None
        hook.uninstall()
        del sys.modules["gm_one"]
        assert "_@graphmend" not in importlib.import_module("gm_one").f.__code__.co_names
    finally:
        sys.meta_path.remove(finder)


def test_namespace_with_builtins_of_its_own(install: Install, write: Write, importing, capsys) -> None:
    class Sandbox(Decorating):
        def exec_module(self, module: ModuleType) -> None:
            names = ("print", "int", "__import__", "__build_class__")
            module.__dict__["__builtins__"] = {name: getattr(builtins, name) for name in names}
            super().exec_module(module)

    install("gm_theirs")
    module = importing(Sandbox)
    assert mended(module) == dict.fromkeys("fgh", True)
    module.f(1)
    assert capsys.readouterr().out == "value 1\n"


class Renaming(SourceFileLoader):
    """Its code has another file name, which tracebacks show."""

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:
        return compile(data, f"<checked {path}>", "exec", dont_inherit=True)


def test_code_from_another_place_stays_theirs(importing, install: Install) -> None:
    install("gm_theirs")
    assert mended(importing(Renaming)) == dict.fromkeys("fgh", False)
    assert "GM016" in record("gm_theirs").why


def test_real_ones(write: Write, python) -> None:
    """In a process of its own: beartype.claw leaves its hook on `sys.path_hooks` for good."""
    pytest.importorskip("beartype.claw")
    write("gm_claw/__init__.py", "def f(x: int):\n    print('value', x)\n    return x\n")
    code = """
import beartype.claw, beartype.roar, graphmend_hook
beartype.claw.beartype_package("gm_claw")
graphmend_hook.install("gm_claw")
import gm_claw
print("_@graphmend" in gm_claw.f.__wrapped__.__code__.co_names)
try:
    gm_claw.f("text")
except beartype.roar.BeartypeCallHintParamViolation:
    print("checked")
"""
    assert python("-c", code).stdout == "True\nchecked\n"
