"""Stock transformers models, untouched, from a plain script: one graph, equal results, every record delivered."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from rows import BREAKS

HERE = Path(__file__).parent
ALL_BACKENDS = ("eager", "aot_eager", "inductor")
ENVIRONMENT = {"GRAPHMEND_MODULES": "transformers"}


@pytest.fixture
def judge(python: Any, tmp_path: Path) -> Any:
    """Run judge.py on a row in a fresh process, and load what it saw."""

    def run(row: str, *backends: str, hook: tuple[str, ...] = (), **env: str) -> dict[str, Any]:
        out = tmp_path / f"{row}.pt"
        done = python(*hook, str(HERE / "judge.py"), row, str(out), *backends, **env)
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = torch.load(out)
        return seen

    return run


@cache
def _stock_results() -> dict[str, dict[str, Any]]:
    return {}


@pytest.fixture
def stock(judge: Any) -> Any:
    """What the untouched library does with a row: in eager, and compiled with the eager backend."""

    def get(row: str) -> dict[str, Any]:
        results = _stock_results()
        if row not in results:
            results[row] = judge(row, "eager")
        return results[row]

    return get


def bit_equal(left: list[Any], right: list[Any]) -> bool:
    pairs = list(zip(left, right, strict=True))
    return all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


@pytest.mark.parametrize("row", BREAKS)
def test_the_untouched_library_breaks(row: str, stock: Any) -> None:
    seen = stock(row)
    assert seen["eager"]["calls"][0]["graphs"] == BREAKS[row] + 1
    assert seen["eager"]["fullgraph"] is None
    assert seen["plain"]["records"]


@pytest.mark.parametrize("row", BREAKS)
def test_mended_by_the_runner_on_every_backend(row: str, judge: Any, stock: Any) -> None:
    expected, seen = stock(row), judge(row, *ALL_BACKENDS, hook=("-m", "graphmend_hook"))
    check(seen, expected, ALL_BACKENDS)


@pytest.mark.parametrize("row", BREAKS)
def test_mended_by_environment_and_import(row: str, judge: Any, stock: Any) -> None:
    check(judge(row, "eager", **ENVIRONMENT), stock(row), ("eager",))


def check(seen: dict[str, Any], expected: dict[str, Any], backends: tuple[str, ...]) -> None:
    records = expected["plain"]["records"]
    assert bit_equal(seen["plain"]["output"], expected["plain"]["output"])
    assert seen["plain"]["records"] == records
    for backend in backends:
        result = seen[backend]
        assert [call["graphs"] for call in result["calls"]] == [1, 1, 1], backend
        assert result["fullgraph"] is not None, result
        assert [call["records"] for call in result["calls"]] == [records] * 3, backend
        assert result["fullgraph_records"] == records
        for output in (*(call["output"] for call in result["calls"]), result["fullgraph"]):
            if backend == "inductor":
                torch.testing.assert_close(output, expected["plain"]["output"])
            else:
                assert bit_equal(output, expected["eager"]["calls"][0]["output"]), backend


@pytest.mark.parametrize("way", ["runner", "environment"])
@pytest.mark.parametrize("row", BREAKS)
def test_every_way_to_call_torch_compile(row: str, way: str, python: Any) -> None:
    hook = ("-m", "graphmend_hook") if way == "runner" else ()
    done = python(*hook, str(HERE / "forms.py"), row, **(ENVIRONMENT if way == "environment" else {}))
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ") for line in done.stdout.splitlines())
    assert set(lines.values()) == {"1 graph, equal"}, done.stdout
    assert len(lines) == 6
