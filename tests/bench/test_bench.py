"""The bench does not let pass what is no result."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rich")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from bench import arms, breaks, latency, models, tables
from bench.latency import Ratio, Setting

CPU = Setting((), "tiny", (1,), rounds=2, calls=2)


# --- latency ---


def test_arms_with_different_inputs_are_no_result() -> None:
    assert arms.differing_inputs({"off": "a", "on": "a"}) == ""
    assert "different inputs" in arms.differing_inputs({"off": "a", "on": "b"})


def test_inputs_are_told_apart_by_shape_dtype_and_values() -> None:
    seen = {
        models.fingerprint({"x": tensor})
        for tensor in (torch.zeros(2), torch.ones(2), torch.zeros(1, 2), torch.zeros(2, dtype=torch.int32))
    }
    assert len(seen) == 4


@pytest.mark.slow
def test_a_model_is_the_same_in_every_process_and_batch() -> None:
    (one, inputs), (other, twice) = models.build("t5"), models.build("t5", batch=2)
    assert all(map(torch.equal, one.parameters(), other.parameters()))
    assert all(torch.equal(twice[name][1:], value) for name, value in inputs.items())


@pytest.mark.parametrize("name", models.SIZES)
@pytest.mark.slow
def test_medium_models_can_be_called(name: str) -> None:
    model, inputs = models.build(name, "medium")
    with torch.no_grad():
        model(**inputs)


def test_a_model_can_be_of_another_type() -> None:
    model, inputs = models.build("t5", dtype="bfloat16")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert {value.dtype for value in inputs.values()} == {torch.int64}


def test_a_size_that_a_row_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match=r"row clap has no size 'real'; it has \['tiny'\]"):
        models.build("clap", "real")


def test_an_arm_with_as_many_graphs_is_not_mended() -> None:
    assert arms.not_mended({"off": 4, "on": 1}) == ""
    assert arms.not_mended({"off": 4, "on": 4}) == "not mended: 4 graphs with the hook, 4 without"


def test_what_cannot_be_measured_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert latency.not_measurable("t5", CPU) == ""
    reduced = Setting((), "tiny", (1,), 2, 2, mode="reduce-overhead")
    assert "need a CUDA GPU" in latency.not_measurable("t5", reduced)
    assert "no size 'medium'" in latency.not_measurable("clap", Setting((), "medium", (1,), 2, 2))
    monkeypatch.setattr(latency, "_free_memory", lambda: 2**30)
    assert "1 GiB are free" in latency.not_measurable("phi3", Setting((), "real", (1,), 2, 2))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert latency.not_measurable("t5", Setting((), "real", (1,), 2, 2, device="cuda")) == "not measured: no CUDA GPU"


def test_slower_by_more_than_the_spread() -> None:
    assert Ratio.of([1.0, 1.0, 1.0, 1.0], [1.2, 1.3, 1.2, 1.1]).is_slower
    assert not Ratio.of([1.0, 1.0, 1.0, 1.0], [0.8, 1.3, 0.9, 1.1]).is_slower


@pytest.mark.slow
def test_a_process_that_fails_says_what_it_was_told(tmp_path: Path) -> None:
    worker = arms.Worker("off", tmp_path)
    try:
        with pytest.raises(arms.ArmFailedError, match="arm off, build: KeyError: 'nothing'"):
            worker("build", row="nothing")
        worker._process.kill()
        with pytest.raises(arms.ArmFailedError, match="the process ended"):
            worker("memory")
    finally:
        worker.close()


def test_caches_of_an_arm_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    monkeypatch.setenv("GRAPHMEND_RULES", "none")
    off, on = (arms.environment(arm, tmp_path / arm) for arm in ("off", "on"))
    assert off["TORCHINDUCTOR_CACHE_DIR"] != on["TORCHINDUCTOR_CACHE_DIR"]
    assert "GRAPHMEND_RULES" not in on
    assert "GRAPHMEND_MODULES" not in off


# --- breaks ---


def calls(graphs: int, value: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    return [{"output": [torch.tensor([value])], "error": None, "records": ["one"], "graphs": graphs, **more}] * 3


def seen(graphs: int, value: float = 1.0, **more: Any) -> dict[str, Any]:
    compiled = {"calls": calls(graphs, value, **more), "tracing": 1.0}
    return {"eager": {"calls": calls(0)}, "compiled eager": compiled, "fullgraph": graphs == 1}


def test_a_line_says_what_differs_from_eager() -> None:
    plain = seen(4)
    line = breaks.summary("t5", "on", plain, seen(1))
    assert (line["breaks"], line["fullgraph"], line["equal"], line["records"]) == (0, True, True, True)
    assert not breaks.summary("t5", "on", plain, seen(1, value=1.00001))["equal"]
    assert not breaks.summary("t5", "on", plain, seen(1, records=[]))["records"]
    line = breaks.summary("t5", "on", plain, seen(1, error=("KeyError", "x\ny")))
    assert (line["breaks"], line["error"], line["equal"]) == (None, "KeyError: x", False)
    assert breaks.summary("t5", "on", plain, {"died": ["killed"]})["died"] == "killed"


def test_totals_count_the_paper_s_rows_as_often_as_the_paper() -> None:
    lines = [
        {"row": row, "arm": arm, "breaks": found}
        for row, found_by_arm in {"t5": (3, 0), "bart_fp16": (6, 1), "clap": (2, 2), "phi3": (5, None)}.items()
        for arm, found in zip(("off", "on"), found_by_arm)
    ]
    assert breaks.totals(lines) == {"rows": 3, "before": 11, "after": 3, "to zero": 1}
    expected = {"rows": 6, "before": 17, "after": 2, "paper": 2, "to zero": 5, "to zero in the paper": 5}
    assert breaks.paper_totals(lines) == expected


# --- tables ---


def test_every_kept_result_has_its_tables() -> None:
    for path in tables.RESULTS.glob("*.json"):
        made = tables.of(path)
        assert made
        for table in made:
            assert all(len(line) == len(table.columns) for line in table.lines)
            assert table.markdown() in (tables.RESULTS / "tables.md").read_text(encoding="utf-8")


def test_a_plot_is_the_same_from_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = [{"row": "t5", "arm": arm, "breaks": found} for arm, found in (("off", 3), ("knobs", 0), ("on", 0))]
    for name in ("one.svg", "two.svg"):
        tables.plot_breaks({"lines": lines}, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_row_that_died_keeps_its_place(tmp_path: Path) -> None:
    lines = [{"row": "t5", "arm": arm, "died": "killed"} for arm in arms.ARMS]
    path = tmp_path / "breaks-1.json"
    path.write_text(json.dumps({"lines": lines, "versions": {"transformers": "1", "torch": "2"}}))
    (table,) = tables.of(path)
    assert "killed" in table.markdown()
