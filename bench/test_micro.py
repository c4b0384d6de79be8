"""Single operations, by pytest-benchmark: finder, cache, rewriter, eager calls, compiled calls."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import graphmend_hook
from graphmend_hook.hook.allowlist import Allowlist
from graphmend_hook.hook.cache import Cache
from graphmend_hook.hook.loader import Mender, MendingFinder
from graphmend_hook.product.report.ledger import Ledger
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES, Settings

from .calls import load_mended, load_plain

RULES = active_rules(RULE_NAMES)


def modeling(name: str) -> Path:
    spec = importlib.util.find_spec("transformers")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "models" / name / f"modeling_{name}.py"


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    return load_plain("bench_plain")


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_mended("bench_mended", tmp_path_factory.mktemp("cache"))


@pytest.fixture
def finder(tmp_path: Path) -> MendingFinder:
    settings = Settings(modules=("transformers",), cache_dir=tmp_path / "cache")
    return MendingFinder(Allowlist(settings.modules), Mender(settings, Ledger()))


class OneFile:
    """Stands for the stock finders, so that only our part of a hit is measured."""

    @staticmethod
    def find_spec(name: str, path: Any, target: Any) -> ModuleSpec:
        return ModuleSpec(name, SourceFileLoader(name, "/nowhere.py"), origin="/nowhere.py")


def test_sitecustomize_without_the_variable(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read, compile and run the file, as a process does that has no pyc of it."""
    monkeypatch.delenv("GRAPHMEND_MODULES", raising=False)
    path = Path(graphmend_hook.__file__).parent / "bootstrap" / "sitecustomize.py"

    def start() -> None:
        monkeypatch.setitem(sys.modules, "sitecustomize", ModuleType("sitecustomize"))
        exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "sitecustomize", "__file__": str(path)})

    benchmark(start)


def test_finder_miss(benchmark: Any, finder: MendingFinder) -> None:
    benchmark(finder.find_spec, "numpy.linalg", ["/nowhere"])


def test_finder_hit(benchmark: Any, finder: MendingFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [OneFile()])
    benchmark(finder.find_spec, "transformers.models.t5", ["/nowhere"])


def test_cache_read(benchmark: Any, tmp_path: Path) -> None:
    cache, path, source = filled_cache(tmp_path)
    assert benchmark(cache.get, path, source) is not None


def test_cache_write(benchmark: Any, tmp_path: Path) -> None:
    cache, path, source = filled_cache(tmp_path)
    result = cache.get(path, source)
    benchmark(cache.put, path, source, result)


def filled_cache(tmp_path: Path) -> tuple[Cache, str, bytes]:
    path, source = str(modeling("t5")), modeling("t5").read_bytes()
    cache = Cache(tmp_path / "cache", RULES)
    cache.put(path, source, rewrite(source, path, RULES))
    assert cache.get(path, source) is not None
    return cache, path, source


def test_rewrite_t5(benchmark: Any) -> None:
    path, source = str(modeling("t5")), modeling("t5").read_bytes()
    benchmark(rewrite, source, path, RULES)


def test_rewrite_grounding_dino(benchmark: Any) -> None:
    """2,500 lines, a site of every rule."""
    path, source = str(modeling("grounding_dino")), modeling("grounding_dino").read_bytes()
    benchmark(rewrite, source, path, RULES)


def test_stock_compile_t5(benchmark: Any) -> None:
    path, source = str(modeling("t5")), modeling("t5").read_bytes()
    benchmark(compile, source, path, "exec", dont_inherit=True)


def test_eager_call_plain(benchmark: Any, plain: ModuleType) -> None:
    benchmark(plain.silent, 0)


def test_eager_call_mended(benchmark: Any, mended: ModuleType) -> None:
    benchmark(mended.silent, 0)


@pytest.mark.parametrize("name", ["quiet_model", "model_with_a_constant_log", "model_with_a_tensor_log"])
def test_compiled_call_mended(benchmark: Any, mended: ModuleType, name: str) -> None:
    benchmark(compiled(mended, name, fullgraph=True), torch.ones(32, 32))


@pytest.mark.parametrize("name", ["model_with_a_constant_log", "model_with_a_tensor_log"])
def test_compiled_call_broken(benchmark: Any, plain: ModuleType, name: str) -> None:
    benchmark(compiled(plain, name, fullgraph=False), torch.ones(32, 32))


def compiled(module: ModuleType, name: str, fullgraph: bool) -> Any:
    torch._dynamo.reset()
    function = torch.compile(getattr(module, name), fullgraph=fullgraph)
    for _ in range(3):
        function(torch.ones(32, 32))
    return function
