"""Stock transformers models, untouched, from a plain script: one graph, equal results, every record delivered."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from rows import HALF, PAPER, ROWS, Row, present

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ENVIRONMENT = {"GRAPHMEND_MODULES": "transformers"}
VERSION = importlib.metadata.version("transformers")
PRESENT = present(VERSION)
# Inductor runs AOTAutograd too: that this alone changes no bit is shown on one version.
BACKENDS = ("eager", "aot_eager", "inductor") if VERSION == PAPER else ("eager", "inductor")
# What a way to call `torch.compile` does is shown on several rows of one version, and on one of the other.
IN_EVERY_FORM = [name for name in PRESENT if ROWS[name].in_every_form][: None if VERSION == PAPER else 1]
# One row after the other: what the untouched library does is asked in several tests.
of_each_row = pytest.mark.parametrize("name", PRESENT, scope="module")

Seen = dict[str, Any]


class Judge:
    """judge.py in a process, started when it is first asked: what a row does, in a file."""

    def __init__(self, directory: Path, environment: dict[str, str], *hook: str) -> None:
        self._directory, self._environment = directory, environment
        self._command = [sys.executable, *hook, str(HERE / "judge.py")]
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, row: str, *backends: str) -> Path:
        if self._process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self._process = subprocess.Popen(self._command, cwd=self._directory, env=self._environment, **pipes)
        assert self._process.stdin and self._process.stdout
        out = self._directory / f"{row}.pt"
        print(json.dumps([row, str(out), *backends]), file=self._process.stdin, flush=True)
        status, words = json.loads(self._process.stdout.readline())
        assert status == 0, words
        return out

    def close(self) -> None:
        if self._process:
            self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def judges(clean_environment: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Judge]]:
    """One without the hook, and one for each way to have it."""
    directory = tmp_path_factory.mktemp("judges")
    ways = {"stock": ({}, ()), "runner": ({}, ("-m", "graphmend_hook")), "environment": (ENVIRONMENT, ())}
    made = {}
    for way, (settings, hook) in ways.items():
        (directory / way).mkdir()
        environment = clean_environment(GRAPHMEND_CACHE_DIR=str(directory / "cache"), **settings)
        made[way] = Judge(directory / way, environment, *hook)
    yield made
    for judge in made.values():
        judge.close()


@pytest.fixture
def stock(judges: dict[str, Judge], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the untouched library does with a row: in eager, and compiled with the eager backend.  Once per test run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def get(row: str) -> Seen:
        file = shared / f"stock-{row}.pt"
        if not file.exists():
            os.replace(judges["stock"](row, "eager"), file)
        seen: Seen = torch.load(file)
        return seen

    return get


def column(calls: list[Seen], name: str) -> list[Any]:
    return [call[name] for call in calls]


@of_each_row
def test_the_untouched_library_breaks(name: str, stock: Any) -> None:
    row, seen = ROWS[name], stock(name)
    graphs = seen["eager"]["calls"][0]["graphs"]
    assert graphs == row.breaks[VERSION] + 1 or (graphs > 1 and torch.__version__ < "2.13")
    if row.dtype == HALF or VERSION == PAPER:  # today's guards end in a scalar, which fullgraph=True captures
        assert seen["eager"]["fullgraph"][0]["error"] is not None
    assert bool(seen["plain"][0]["records"]) == (VERSION in row.logs)


@of_each_row
def test_the_calls_of_a_row_are_what_it_says(name: str, stock: Any) -> None:
    """Guards that fail do, and the overflow clamp keeps infinity out of what follows: without it there are nans."""
    calls = stock(name)["plain"]
    failing = name.endswith("attention") or name in ("paligemma", "internvl", "florence2", "florence2_fp16")
    assert any(column(calls, "error")) == (failing or name == "flaubert_lengths")
    assert calls[0]["error"] is calls[-1]["error"] is None
    if ROWS[name].dtype == HALF:
        assert all(t.isfinite().all() for call in calls if not call["error"] for t in call["output"])


@pytest.fixture
def backends(name: str, request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Those that the row is compiled with: all of them, or one, which is Inductor for one row in four."""
    if VERSION in ROWS[name].still:
        return ("eager",)
    if request.config.getoption("--each-on-one"):
        return BACKENDS[-1:] if zlib.crc32(name.encode()) % 4 == 0 else BACKENDS[-2:-1]
    return BACKENDS


@of_each_row
def test_mended_by_the_runner(name: str, judges: dict[str, Judge], stock: Any, backends: tuple[str, ...]) -> None:
    seen = torch.load(judges["runner"](name, *backends))
    check(ROWS[name], seen, stock(name), backends)


@pytest.mark.parametrize("name", IN_EVERY_FORM)
def test_mended_by_environment_and_import(name: str, judges: dict[str, Judge], stock: Any) -> None:
    seen = torch.load(judges["environment"](name, "eager"))
    check(ROWS[name], seen, stock(name), ("eager",))


def check(row: Row, seen: Seen, stock: Seen, backends: tuple[str, ...]) -> None:
    plain = stock["plain"]
    assert column(seen["plain"], "error") == column(plain, "error")
    assert column(seen["plain"], "records") == column(plain, "records")
    for call, expected in zip(seen["plain"], plain, strict=True):
        assert_equal(call["output"], expected["output"], "eager without torch.compile")
    for backend in backends:
        graphs = column(seen[backend]["calls"], "graphs")
        assert graphs[0] <= row.still.get(VERSION, 0) + 1, (backend, graphs)
        assert graphs[-1] <= graphs[0] + row.recompiles, (backend, graphs)
        assert graphs[-1] == graphs[-2], (backend, graphs)
        for way in ["calls"] if VERSION in row.still else ["calls", "fullgraph"]:
            calls, where = seen[backend][way], (backend, way)
            assert column(calls, "error") == column(plain, "error"), where
            # A library may itself log less while it is traced (longformer does).
            as_eager = column(calls, "records") == column(plain, "records")
            assert as_eager or column(calls, "records") == column(stock["eager"]["calls"], "records"), where
            for number, (call, expected) in enumerate(zip(calls, stock["eager"]["calls"], strict=True)):
                if call["error"] or (backend == "inductor" and number in row.wrong_in_inductor):
                    continue
                rounded = backend == "inductor" or (backend == "aot_eager" and row.rounded_by_aot)
                compare = assert_close if rounded else assert_equal
                compare(call["output"], expected["output"], (*where, number))


def assert_equal(outputs: list[Any] | None, expected: list[Any] | None, where: object) -> None:
    torch.testing.assert_close(outputs, expected, rtol=0, atol=0, equal_nan=True, msg=lambda m: f"{where}: {m}")


def assert_close(outputs: list[Any], expected: list[Any], where: object) -> None:
    """Within the usual tolerance; in half precision, as a share of what is largest in a tensor."""
    for left, right in zip(outputs, expected, strict=True):
        half = {"rtol": 0.01, "atol": 0.01 * float(right.abs().max())} if right.dtype == HALF else {}
        torch.testing.assert_close(left, right, equal_nan=True, msg=lambda m: f"{where}: {m}", **half)


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "runner") for name in IN_EVERY_FORM), *((name, "environment") for name in IN_EVERY_FORM[:1])],
)
def test_every_way_to_call_torch_compile(name: str, way: str, judges: dict[str, Judge]) -> None:
    found = torch.load(judges[way](name, "forms"))
    assert set(found.values()) == {(1, True)}, found
    assert len(found) == 6
