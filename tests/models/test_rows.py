"""Stock transformers models, untouched, from a plain script: one graph, equal results, every record delivered."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from rows import HALF, PAPER, ROWS, Row, present

HERE = Path(__file__).parent
ALL_BACKENDS = ("eager", "aot_eager", "inductor")
ENVIRONMENT = {"GRAPHMEND_MODULES": "transformers"}
VERSION = importlib.metadata.version("transformers")
PRESENT = present(VERSION)
IN_EVERY_FORM = [name for name in PRESENT if ROWS[name].in_every_form]

Seen = dict[str, Any]


@pytest.fixture
def judge(python: Any, tmp_path: Path) -> Any:
    """Run judge.py on a row in a fresh process, and give the file with what it saw."""

    def run(row: str, *backends: str, hook: tuple[str, ...] = (), **env: str) -> Path:
        out = tmp_path / f"{row}.pt"
        done = python(*hook, str(HERE / "judge.py"), row, str(out), *backends, timeout=600, **env)
        assert done.returncode == 0, done.stderr
        return out

    return run


@pytest.fixture
def stock(judge: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the untouched library does with a row: in eager, and compiled with the eager backend.  Once per test run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def get(row: str) -> Seen:
        file = shared / f"stock-{row}.pt"
        if not file.exists():
            os.replace(judge(row, "eager"), file)
        seen: Seen = torch.load(file)
        return seen

    return get


def column(calls: list[Seen], name: str) -> list[Any]:
    return [call[name] for call in calls]


@pytest.mark.parametrize("name", PRESENT)
def test_the_untouched_library_breaks(name: str, stock: Any) -> None:
    row, seen = ROWS[name], stock(name)
    assert seen["eager"]["calls"][0]["graphs"] == row.breaks[VERSION] + 1
    if row.dtype == HALF or VERSION == PAPER:  # today's guards end in a scalar, which fullgraph=True captures
        assert seen["eager"]["fullgraph"][0]["error"] is not None
    assert bool(seen["plain"][0]["records"]) == (VERSION in row.logs)


@pytest.mark.parametrize("name", PRESENT)
def test_the_calls_of_a_row_are_what_it_says(name: str, stock: Any) -> None:
    """Guards that fail do, and the overflow clamp keeps infinity out of what follows: without it there are nans."""
    calls = stock(name)["plain"]
    failing = name.endswith("attention") or name in ("paligemma", "internvl", "florence2", "florence2_fp16")
    assert any(column(calls, "error")) == (failing or name == "flaubert_lengths")
    assert calls[0]["error"] is calls[-1]["error"] is None
    if ROWS[name].dtype == HALF:
        assert all(t.isfinite().all() for call in calls if not call["error"] for t in call["output"])


@pytest.mark.parametrize("name", PRESENT)
def test_mended_by_the_runner_on_every_backend(name: str, judge: Any, stock: Any) -> None:
    backends = ("eager",) if VERSION in ROWS[name].still else ALL_BACKENDS
    seen = torch.load(judge(name, *backends, hook=("-m", "graphmend_hook")))
    check(ROWS[name], seen, stock(name), backends)


@pytest.mark.parametrize("name", IN_EVERY_FORM)
def test_mended_by_environment_and_import(name: str, judge: Any, stock: Any) -> None:
    seen = torch.load(judge(name, "eager", **ENVIRONMENT))
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


@pytest.mark.parametrize("way", ["runner", "environment"])
@pytest.mark.parametrize("name", IN_EVERY_FORM)
def test_every_way_to_call_torch_compile(name: str, way: str, python: Any) -> None:
    hook = ("-m", "graphmend_hook") if way == "runner" else ()
    done = python(*hook, str(HERE / "forms.py"), name, **(ENVIRONMENT if way == "environment" else {}))
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ") for line in done.stdout.splitlines())
    assert set(lines.values()) == {"1 graph, equal"}, done.stdout
    assert len(lines) == 6
