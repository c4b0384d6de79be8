"""Late mending: functions that exist already get other code, stay the same objects, and can have their own back."""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import linecache
import logging
import multiprocessing.spawn
import os
import runpy
import sys
import textwrap
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hook_cases import MENDABLE, PLAIN, record

import graphmend_hook
from graphmend_hook.diagnostics import ConfigError, StrictError
from graphmend_hook.hook.install import Hook
from graphmend_hook.product.report.ledger import Status, ledger

Write = Callable[[str, str], Path]
Install = Callable[..., Hook]
EVERY_KIND = '''
import functools


def wraps(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print("around")
        return function(*args, **kwargs)

    return wrapper


def plain(x, y=2, *, z=3):
    """Has a docstring."""
    print("plain", x)
    return x + y + z


@wraps
@wraps
def twice(x):
    print("twice")
    return x


def make(n):
    def inner(x):
        print("inner", n)
        return x + n

    return inner


def generate(n):
    for i in range(n):
        print("item", i)
        yield i


async def wait(x):
    print("wait")
    return x


@functools.lru_cache
def cached(x):
    print("cached")
    return x


class Base:
    def method(self, x):
        print("base", x)
        return x


class Kinds(Base):
    def __init__(self):
        self.__secret = 1

    def method(self, x):
        print("method", self.__secret)
        return super().method(x)

    @property
    def both(self):
        print("get")
        return self.__secret

    @both.setter
    def both(self, value):
        print("set")
        self.__secret = value

    @functools.cached_property
    def once(self):
        print("once")
        return 5

    @staticmethod
    def static(x):
        print("static")
        return x

    @classmethod
    def of_class(cls, x):
        print(cls.__name__)
        return x

    class Nested:
        def method(self):
            print("nested")


if True:
    def conditional():
        print("first")
else:
    def conditional():
        print("second")


def rewritten():
    print("old")


def rewritten():
    print("new")


closure = make(10)
table = {"plain": plain, "list": [plain, closure]}
partial = functools.partial(plain, 1)
bound = Kinds().method
'''
USE = """
import asyncio
def use(m, out):
    k = m.Kinds()
    k.both = 7
    out += [m.plain(1), m.twice(2), m.closure(3), m.make(5)(3), list(m.generate(2)), asyncio.run(m.wait(4))]
    out += [m.cached(1), k.method(1), k.both, k.once, k.once, k.static(1), k.of_class(2), k.Nested().method()]
    out += [m.conditional(), m.rewritten(), m.table["list"][1](1), m.partial(), m.bound(1)]
"""


def is_mended(function: types.FunctionType) -> bool:
    names = [*function.__code__.co_names, *function.__code__.co_freevars]
    return "_@graphmend" in names


def functions_of(module: types.ModuleType) -> list[types.FunctionType]:
    file = module.__file__
    return [f for f in gc.get_objects() if type(f) is types.FunctionType and f.__code__.co_filename == file]


@pytest.fixture
def kinds(fresh_imports: Path, write: Write) -> types.ModuleType:
    write("gm_kinds.py", EVERY_KIND)
    return importlib.import_module("gm_kinds")


@pytest.fixture(autouse=True)
def _cache(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(cache_dir))


def used(module: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> tuple[list[object], str]:
    namespace: dict[str, Callable[..., None]] = {}
    exec(USE, namespace)
    out: list[object] = []
    module.cached.cache_clear()
    namespace["use"](module, out)
    return out, capsys.readouterr().out


def test_every_kind_of_function(kinds: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are mended, do what they did, are the objects that they were, and get their very code back."""
    expected = used(kinds, capsys)
    functions = functions_of(kinds)
    before = {id(function): function.__code__ for function in functions}
    contents = dict(vars(kinds))
    assert graphmend_hook.mend(kinds) is kinds
    assert {f.__qualname__ for f in functions if not is_mended(f)} == {"wraps", "make", "wait", "Kinds.__init__"}
    assert {f.__code__.co_name for f in functions} >= {"wrapper", "plain", "inner", "both", "once", "of_class"}
    assert used(kinds, capsys) == expected
    assert vars(kinds) == contents
    assert kinds.plain.__defaults__ == (2,)
    assert kinds.plain.__doc__ == "Has a docstring."
    assert record("gm_kinds").status is Status.MENDED
    assert not record("gm_kinds").why
    graphmend_hook.unmend(kinds)
    assert all(function.__code__ is before[id(function)] for function in functions)
    assert used(kinds, capsys) == expected


def test_again_is_no_change(kinds: types.ModuleType) -> None:
    graphmend_hook.mend(kinds)
    functions = functions_of(kinds)
    codes = [function.__code__ for function in functions]
    graphmend_hook.mend(kinds)
    graphmend_hook.mend(kinds.plain)
    assert all(function.__code__ is code for function, code in zip(functions, codes, strict=True))
    assert len(functions_of(kinds)) == len(functions)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("plain", "plain"),
        ("twice", "twice wraps.<locals>.wrapper"),
        ("closure", "make.<locals>.inner"),
        ("partial", "plain"),
        ("bound", "Kinds.method"),
        ("cached", "cached"),
        ("Base", "Base.method"),
        ("Kinds.static", "Kinds.static"),
        ("Kinds.both", "Kinds.both Kinds.both"),
        ("Kinds.Nested", "Kinds.Nested.method"),
    ],
)
def test_what_is_meant(thing: str, expected: str, kinds: types.ModuleType) -> None:
    target = functools.reduce(getattr, thing.split("."), kinds)
    functions = functions_of(kinds)
    assert graphmend_hook.mend(target) == target
    mended = {function.__code__.co_qualname for function in functions if is_mended(function)}
    assert mended == set(expected.split())
    sites = {site.function for site in record("gm_kinds").sites}
    assert sites == mended
    graphmend_hook.unmend(target)
    assert not any(map(is_mended, functions))


if sys.version_info < (3, 11):  # code objects have no qualified name there
    del test_what_is_meant


def test_class_with_what_it_inherits(kinds: types.ModuleType) -> None:
    graphmend_hook.mend(kinds.Kinds)
    assert is_mended(kinds.Base.method)
    assert is_mended(kinds.Kinds.__dict__["of_class"].__func__)
    assert not is_mended(kinds.plain)


def test_object_means_the_modules_of_its_classes(kinds: types.ModuleType, write: Write) -> None:
    write(
        "gm_derived.py", "from gm_kinds import Base\nclass Derived(Base):\n    def own(self):\n        print('own')\n"
    )
    derived = importlib.import_module("gm_derived")
    thing = derived.Derived()
    assert graphmend_hook.mend(thing) is thing
    assert is_mended(derived.Derived.own)
    assert is_mended(kinds.plain)


def test_sites_of_several_functions_add_up(kinds: types.ModuleType) -> None:
    graphmend_hook.mend(kinds.plain)
    graphmend_hook.mend(kinds.rewritten)
    assert [site.function for site in record("gm_kinds").sites] == ["plain", "rewritten"] or [
        site.function for site in record("gm_kinds").sites
    ] == ["plain", "rewritten", "rewritten"]


def test_decorator(fresh_imports: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "from graphmend_hook import mend\n@mend\n" + MENDABLE + "@mend\nclass C:\n    def g(self):\n        print(1)\n"
    )
    write("gm_decorated.py", text)
    module = importlib.import_module("gm_decorated")
    assert is_mended(module.f)
    assert is_mended(module.C.g)
    assert module.f(3) == 3
    assert capsys.readouterr().out == "value 3\n"


def test_function_under_other_globals(kinds: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    other = types.FunctionType(kinds.plain.__code__, {"__builtins__": __builtins__}, argdefs=(1,))
    other.__kwdefaults__ = {"z": 1}
    graphmend_hook.mend(kinds)
    assert is_mended(other)
    assert other(1) == 3
    assert capsys.readouterr().out == "plain 1\n"


def test_frozen_functions_are_found_by_their_place(fresh_imports: Path, write: Write) -> None:
    write("gm_frozen.py", MENDABLE + "class C:\n    def g(self):\n        print(1)\n")
    module = importlib.import_module("gm_frozen")
    gc.freeze()
    try:
        graphmend_hook.mend(module)
    finally:
        gc.unfreeze()
    assert is_mended(module.f)
    assert is_mended(module.C.g)


def test_package_with_what_is_imported_below_it(fresh_imports: Path, write: Write) -> None:
    for name in ("__init__", "a", "b", "sub/__init__", "sub/c"):
        write(f"gm_package/{name}.py", MENDABLE)
    names = ["gm_package", "gm_package.a", "gm_package.sub", "gm_package.sub.c"]
    modules = [importlib.import_module(name) for name in names]
    graphmend_hook.mend(modules[0])
    assert all(is_mended(module.f) for module in modules)
    assert sorted(ledger.modules) == names


def test_namespace_with_what_must_not_be_touched(fresh_imports: Path, write: Write) -> None:
    """Proxies, as Flask's, raise for whatever is asked of them; a class may hold itself, and a wrapper may wrap itself."""
    proxy = """
class Proxy:
    def __getattribute__(self, name):
        raise RuntimeError("outside of a request")
    __eq__ = __hash__ = __bool__ = __len__ = None

request = Proxy()

class Knot:
    def g(self):
        print("g")

Knot.itself = Knot
Knot.other = type("Other", (), {"back": Knot, "__module__": __name__})
Knot.other.there = Knot.other

def around():
    print("around")
around.__wrapped__ = around
"""
    write("gm_proxies.py", MENDABLE + proxy)
    module = importlib.import_module("gm_proxies")
    graphmend_hook.mend(module)
    assert is_mended(module.f)
    assert is_mended(module.Knot.g)
    graphmend_hook.mend(module.Knot)
    graphmend_hook.mend(module.around)


def test_objects_are_not_woken(fresh_imports: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies in a namespace or in `sys.modules`: no property, metaclass or lazy module is asked."""
    woken: list[str] = []

    class Waking(type):
        def __getattribute__(cls, name: str) -> object:
            woken.append(name)
            return super().__getattribute__(name)

    class Local:
        __slots__ = ()

        @property
        def __dict__(self) -> dict[str, object]:  # type: ignore[override]
            raise RuntimeError("no context")

        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise RuntimeError("no context")

    class Stub:
        def __getattr__(self, name: str) -> str:
            woken.append(name)
            return ""

    write("gm_lazy.py", "raise AssertionError('loaded')")
    spec = importlib.util.find_spec("gm_lazy")
    lazy = importlib.util.module_from_spec(spec)
    importlib.util.LazyLoader(spec.loader).exec_module(lazy)
    monkeypatch.setitem(sys.modules, "gm_lazy", lazy)
    monkeypatch.setitem(sys.modules, "gm_woken.stub", Stub())
    monkeypatch.setitem(sys.modules, "gm_woken.local", Local())
    write("gm_woken.py", MENDABLE)
    module = importlib.import_module("gm_woken")
    module.local, module.waking = Local(), Waking("W", (), {"__module__": "gm_woken"})
    woken.clear()
    graphmend_hook.mend(module)
    graphmend_hook.install("gm_other", late=True)
    graphmend_hook.report()
    graphmend_hook.uninstall()
    assert is_mended(module.f)
    assert not woken
    monkeypatch.undo()


def test_closure_that_is_made_after_mending(kinds: types.ModuleType) -> None:
    del kinds.closure, kinds.table
    gc.collect()
    graphmend_hook.mend(kinds)
    made = kinds.make(1)
    assert is_mended(made)
    graphmend_hook.unmend(kinds)
    assert not is_mended(made)


def test_methods_behind_descriptors(fresh_imports: Path, write: Write) -> None:
    text = """
    import functools

    class C:
        @functools.singledispatchmethod
        def single(self, x):
            print("single", x)

        def part(self, x):
            print("part", x)

        partly = functools.partialmethod(lambda self, x: print("lambda", x), 1)
    """
    write("gm_behind.py", text)
    module = importlib.import_module("gm_behind")
    graphmend_hook.mend(module.C)
    assert is_mended(vars(module.C)["single"].func)
    assert is_mended(module.C.part)


def test_hook_of_late_mending_makes_room(install: Install, kinds: types.ModuleType) -> None:
    graphmend_hook.mend(kinds)
    hook = install("gm_other", guards="async")
    assert hook.installed
    importlib.reload(kinds)
    assert is_mended(kinds.plain)


def test_module_that_mends_itself(fresh_imports: Path, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    write("gm_itself.py", MENDABLE + "import graphmend_hook, sys\ngraphmend_hook.mend(sys.modules[__name__])\n")
    assert is_mended(importlib.import_module("gm_itself").f)
    assert caplog.text == ""


def test_dataclass(fresh_imports: Path, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    text = "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int\n    def f(self):\n        print(self.x)\n"
    write("gm_dataclass.py", text)
    module = importlib.import_module("gm_dataclass")
    graphmend_hook.mend(module.D)
    assert is_mended(module.D.f)
    assert caplog.text == ""


def test_module_that_is_reloaded(kinds: types.ModuleType) -> None:
    graphmend_hook.mend(kinds)
    importlib.reload(kinds)
    assert is_mended(kinds.plain)
    graphmend_hook.unmend(kinds)
    importlib.reload(kinds)
    assert not is_mended(kinds.plain)


# What is left alone


def test_edited_text(fresh_imports: Path, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("gm_edited.py", MENDABLE + "def g():\n    print(1)\n")
    module = importlib.import_module("gm_edited")
    path.write_text(path.read_text().replace("value", "other"))
    code = module.f.__code__
    graphmend_hook.mend(module)
    assert module.f.__code__ is code
    assert is_mended(module.g)
    assert "GM014: f of gm_edited runs unmended" in caplog.text
    assert "GM014" in record("gm_edited").why


def test_code_that_another_tool_has_changed(kinds: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    changed = kinds.plain.__code__.replace(co_consts=tuple(9 if c == 2 else c for c in kinds.plain.__code__.co_consts))
    kinds.plain.__code__ = changed.replace(co_names=("print",), co_consts=(*changed.co_consts, "more"))
    code = kinds.plain.__code__
    graphmend_hook.mend(kinds)
    assert kinds.plain.__code__ is code
    assert "plain of gm_kinds" in caplog.text


def test_two_functions_on_one_line(fresh_imports: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("gm_line.py", "a, b = [lambda x: print('a', x), lambda x: print('b', x)]\ndef f():\n    print(1)\n")
    module = importlib.import_module("gm_line")
    graphmend_hook.mend(module)
    module.a(1), module.b(2), module.f()
    assert capsys.readouterr().out == "a 1\nb 2\n1\n"
    assert is_mended(module.f)


def test_text_that_cannot_be_found(caplog: pytest.LogCaptureFixture) -> None:
    namespace: dict[str, types.FunctionType] = {"__name__": "gm_nowhere"}
    exec(compile(MENDABLE, "<gm nowhere>", "exec"), namespace)
    graphmend_hook.mend(namespace["f"])
    assert not is_mended(namespace["f"])
    assert "GM014: f of gm_nowhere runs unmended: its text cannot be found" in caplog.text


def test_text_that_linecache_knows(capsys: pytest.CaptureFixture[str]) -> None:
    """As cells of notebooks, and what libraries generate with its text."""
    namespace: dict[str, types.FunctionType] = {"__name__": "gm_generated"}
    text = textwrap.dedent(MENDABLE)
    linecache.cache["<gm generated>"] = (len(text), None, text.splitlines(True), "<gm generated>")
    exec(compile(text, "<gm generated>", "exec"), namespace)
    graphmend_hook.mend(namespace["f"])
    assert is_mended(namespace["f"])
    assert namespace["f"](2) == 2
    assert capsys.readouterr().out == "value 2\n"
    del linecache.cache["<gm generated>"]


@pytest.mark.parametrize("way", ["GRAPHMEND_DENY", "GRAPHMEND_DISABLE", "source"])
def test_what_is_not_to_be_mended(way: str, fresh_imports: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("gm_denied.py", ("# graphmend: off\n" if way == "source" else "") + MENDABLE)
    module = importlib.import_module("gm_denied")
    if way != "source":
        monkeypatch.setenv(way, {"GRAPHMEND_DENY": "gm_denied", "GRAPHMEND_DISABLE": "1"}[way])
    graphmend_hook.mend(module)
    graphmend_hook.mend(module.f)
    assert not is_mended(module.f)


@pytest.mark.parametrize("text", ["def f(x):\n    return x\n", "def f(x:\n"], ids=["nothing to mend", "no text at all"])
def test_text_that_was_edited_away(text: str, fresh_imports: Path, write: Write, caplog) -> None:
    path = write("gm_gone.py", MENDABLE)
    module = importlib.import_module("gm_gone")
    path.write_text(text)
    graphmend_hook.mend(module)
    assert not is_mended(module.f)
    assert "GM014: f of gm_gone" in caplog.text


@pytest.mark.parametrize("name", [".", "a\0b", "\udcff", "/dev/null"])
def test_text_at_a_place_that_has_none(name: str, caplog: pytest.LogCaptureFixture) -> None:
    namespace: dict[str, types.FunctionType] = {"__name__": "gm_odd"}
    exec(compile(MENDABLE, "x", "exec"), namespace)
    function = namespace["f"]
    function.__code__ = function.__code__.replace(co_filename=name)
    graphmend_hook.mend(function)
    assert not is_mended(function)
    assert "GM014" in caplog.text


def test_globals_with_builtins_of_their_own(kinds: types.ModuleType, caplog: pytest.LogCaptureFixture, capsys) -> None:
    """As those of torch.package, and of sandboxes: the mended code would not find us there."""
    sandboxed = types.FunctionType(kinds.plain.__code__, {"__builtins__": {"print": print}}, argdefs=(1,))
    sandboxed.__kwdefaults__ = {"z": 1}
    graphmend_hook.mend(kinds)
    assert not is_mended(sandboxed)
    assert sandboxed(1) == 3
    assert "builtins of their own" in caplog.text


def test_module_without_source() -> None:
    with pytest.raises(TypeError, match="loaded from source"):
        graphmend_hook.mend(types.ModuleType("gm_made"))


@pytest.mark.parametrize("thing", [5, "text", None, object(), print, len, [1]])
def test_what_has_no_code(thing: object) -> None:
    with pytest.raises(TypeError, match=r"mend\(\) takes a function, a class, a module or a model"):
        graphmend_hook.mend(thing)


@pytest.mark.parametrize("thing", [functools, functools.wraps, functools.partialmethod])
def test_what_cannot_be_mended(thing: object) -> None:
    with pytest.raises(ConfigError, match="functools"):
        graphmend_hook.mend(thing)


def test_module_mended_at_import_stays(install: Install, write: Write) -> None:
    write("gm_imported.py", MENDABLE)
    install("gm_imported")
    module = importlib.import_module("gm_imported")
    code = module.f.__code__
    graphmend_hook.mend(module)
    assert module.f.__code__ is code
    assert not record("gm_imported").why
    graphmend_hook.unmend(module)
    assert module.f.__code__ is code


def test_test_module_that_pytest_has_rewritten(caplog: pytest.LogCaptureFixture) -> None:
    def local(x: int) -> int:
        assert x
        print(x)
        return x

    code = local.__code__
    graphmend_hook.mend(local)
    assert local.__code__ is code
    assert "GM014" in caplog.text


# install(..., late=True)


def test_install_late(install: Install, kinds: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    install("gm_kinds", late=True, strict=True)
    assert is_mended(kinds.plain)
    assert is_mended(kinds.closure)
    assert record("gm_kinds").status is Status.MENDED
    assert caplog.text == ""


def test_install_late_finds_nothing_to_mend(install: Install, fresh_imports: Path, write: Write) -> None:
    write("gm_plain.py", PLAIN)
    importlib.import_module("gm_plain")
    install("gm_plain", late=True, strict=True)
    assert record("gm_plain").status is Status.UNCHANGED


def test_install_late_leaves_others_alone(install: Install, kinds: types.ModuleType, write: Write) -> None:
    write("gm_kinds_other.py", MENDABLE)
    other = importlib.import_module("gm_kinds_other")
    install("gm_kinds", late=True)
    assert not is_mended(other.f)


def test_install_late_whose_text_is_gone(install: Install, fresh_imports: Path, write: Write) -> None:
    path = write("gm_gone.py", MENDABLE)
    importlib.import_module("gm_gone")
    path.unlink()
    linecache.clearcache()
    with pytest.raises(StrictError, match="GM001: gm_gone"):
        install("gm_gone", late=True, strict=True)


def test_remedy_of_too_early(install: Install, kinds: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    install("gm_kinds")
    assert "late=True" in caplog.text


def test_nothing_is_left_behind(kinds: types.ModuleType, fresh_imports: Path, write: Write) -> None:
    """Of installing, mending, loading by place and switching children on: all is as it was, once all is taken back."""

    def state() -> dict[str, object]:
        owners = (importlib, importlib.util, importlib.machinery, runpy, multiprocessing.spawn, linecache, gc)
        return {
            **{name: list(getattr(sys, name)) for name in ("meta_path", "path", "path_hooks", "argv", "warnoptions")},
            **{owner.__name__: dict(vars(owner)) for owner in owners},
            "builtins": dict(vars(builtins)),
            "environment": dict(os.environ),
            "hooks": (sys.excepthook, sys.displayhook, sys.getprofile(), sys.gettrace(), threading.excepthook),
            "filters": list(warnings.filters),
            "logging": (logging.root.handlers, logging.getLogger("graphmend_hook").handlers, logging.root.level),
            "gc": (gc.isenabled(), gc.get_threshold(), gc.callbacks),
            "kinds": dict(vars(kinds)),
            "codes": [function.__code__ for function in functions_of(kinds)],
        }

    write("gm_loaded.py", MENDABLE)
    graphmend_hook.mend(kinds)
    graphmend_hook.unmend(kinds)
    graphmend_hook.uninstall()
    before = state()
    hook = graphmend_hook.install("gm_loaded,gm_kinds", late=True, children=True, log="error")
    importlib.import_module("gm_loaded")
    spec = importlib.util.spec_from_file_location("gm_loaded", fresh_imports / "gm_loaded.py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    runpy.run_path(str(fresh_imports / "gm_loaded.py"))
    assert state() != before
    hook.uninstall()
    graphmend_hook.unmend(kinds)
    after = state()
    assert {name for name in before if before[name] != after[name]} == set()


def test_to_and_fro_takes_no_memory(kinds: types.ModuleType) -> None:
    codes = set()
    for _ in range(5):
        graphmend_hook.mend(kinds)
        codes.add(id(kinds.plain.__code__))
        graphmend_hook.unmend(kinds)
        codes.add(id(kinds.plain.__code__))
    assert len(codes) == 2


def test_what_is_left_is_not_reported_as_mended(fresh_imports: Path, write: Write) -> None:
    path = write("gm_left.py", MENDABLE)
    module = importlib.import_module("gm_left")
    path.write_text(path.read_text().replace("value", "other"))
    graphmend_hook.mend(module)
    assert record("gm_left").status is Status.UNCHANGED
    assert not record("gm_left").sites
    assert "GM014, 1 site: f of gm_left" in graphmend_hook.report()
