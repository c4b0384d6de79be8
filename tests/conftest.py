"""Fixtures for every test: fresh interpreters with a clean environment, and modules written on the spot."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No property is judged by how long it takes to draw or to check an example.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# An exception of ours that we did not expect must not pass for a refusal, here or in the processes started here.
os.environ["_GRAPHMEND_DEFECTS"] = "raise"
# A thread of torch waits for work by turning in circles: with tensors as small as here it takes time from other tests.
os.environ["OMP_NUM_THREADS"] = "1"
# Where triton is installed, each process that compiles with Inductor starts others beside it, to compile for a GPU.
os.environ["TORCH_WARM_POOL"] = "0"
# Dynamo looks for garbage after each frame that it compiles; tests that count what is left look for it themselves.
os.environ["TORCH_DYNAMO_RUN_GC_AFTER_COMPILE"] = "0"

sys.path.insert(0, os.path.dirname(__file__))  # where the packages are that tests share
sys.path.append(str(Path(__file__).parents[1]))  # where `bench` is, which is tested but not installed

import graphmend_hook

# A shell makes its background jobs ignore the interrupt, which their children inherit; what is run here must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-backend", metavar="BACKEND", help="the backend of each test that has this one and others")
    parser.addoption("--each-on-one", action="store_true", help="each case on one of its backends, a few on Inductor")
    parser.addoption("--sample", metavar="N", type=int, help="one in N of the cases of tests/compiled, 2 of models")


_TRAINS = ("train", "trained", "trained_input")


def _backend(item: pytest.Item) -> str | None:
    """The backend of torch.compile that the test is about, if it is one of several."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("backend") if callspec else None


def _case(item: pytest.Item) -> tuple[Any, ...]:
    """What the test is about but for the backend, and for whether it trains, which goes with that."""
    params = {key: value for key, value in item.callspec.params.items() if key not in ("backend", *_TRAINS)}
    return item.function, *(value if isinstance(value, str) else id(value) for value in params.values())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whole models first: pytest-xdist gives the last tests to whoever is free, and those are short ones then."""
    items.sort(key=lambda item: item.path.parent.name != "models")
    for item in items:
        if _backend(item) in ("aot_eager", "inductor"):  # Inductor waits for a C++ compiler
            item.add_marker("slow")
    left_out = set[pytest.Item]()
    if chosen := config.getoption("--one-backend"):
        have_it = {_case(item) for item in items if _backend(item) == chosen}
        left_out |= {item for item in items if _backend(item) not in (None, chosen) and _case(item) in have_it}
    if config.getoption("--each-on-one"):
        left_out |= _all_but_one_backend(items)
    if count := config.getoption("--sample"):
        of_cases = {item for item in items if hasattr(item, "callspec")} - left_out
        compiled = {item for item in of_cases if item.path.parent.name == "compiled"}
        rows = {item for item in of_cases if item.path.name == "test_rows.py"}
        left_out |= (compiled - _sample(compiled, count)) | (rows - _sample(rows, max(count // 2, 1)))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _all_but_one_backend(items: list[pytest.Item]) -> set[pytest.Item]:
    """One case in eight stays on Inductor, one in four on the eager backend, the others on AOTAutograd, if they have it."""
    of_case = dict[tuple[Any, ...], list[pytest.Item]]()
    for item in items:
        if _backend(item):
            of_case.setdefault(_case(item), []).append(item)
    left_out = set[pytest.Item]()
    for same in of_case.values():
        drawn = zlib.crc32(same[0].nodeid.encode()) % 8
        wish = {0: "inductor", 1: "eager", 2: "eager"}.get(drawn, "aot_eager")
        kept = next((item for item in same if _backend(item) == wish), same[0])
        left_out.update(item for item in same if _backend(item) != _backend(kept))
    return left_out


def _sample(items: set[pytest.Item], count: int) -> set[pytest.Item]:
    """One in `count` of them, the same ones in each process and on each machine."""
    return {item for item in items if zlib.crc32(item.nodeid.encode()) % count == 0}


def pytest_collection_finish() -> None:
    """To look for garbage after every 700 new objects, and through all that is imported, is a quarter of a trace."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def _clean_environment(**changes: str) -> dict[str, str]:
    """The process environment without what would steer python, pytest or the hook, plus `changes`.

    Inductor keeps compiled kernels where it does in this process, so that tests share them, and starts no more processes.
    """
    steering = ("GRAPHMEND_", "PYTHON", "PYTEST_", "COV_", "TRANSFORMERS_", "TORCH")
    kept = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_WARM_POOL")
    env = {key: value for key, value in os.environ.items() if key in kept or not key.startswith(steering)}
    env.update({"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"})
    env.update(changes)
    return env


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def clean_environment() -> Callable[..., dict[str, str]]:
    return _clean_environment


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Run ``python *args`` in `tmp_path` (or `cwd`) with a clean environment and a cache of its own."""

    def run(*args: str, cwd: Path | None = None, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
        env.setdefault("GRAPHMEND_CACHE_DIR", str(tmp_path / "graphmend-cache"))
        return subprocess.run(
            [sys.executable, *args],
            cwd=cwd or tmp_path,
            env=_clean_environment(**env),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write dedented `text` to `name` below `tmp_path`, and give its path."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def fresh_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """`tmp_path` on `sys.path`; modules imported from it, and hooks installed meanwhile, are gone afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = set(sys.modules)
    yield tmp_path
    graphmend_hook.uninstall()
    for name in set(sys.modules) - before:
        origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
        if origin.startswith(str(tmp_path)):
            del sys.modules[name]
