"""What is frozen is what is emitted and decided; a difference of it is found, and nothing else is one."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bench import frozen, frozen_calls, frozen_programs

SOURCE = """
import torch

def clamps(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if y.sum() > 3:
        y = y + 1
    return y

def halves(x: torch.Tensor) -> torch.Tensor:
    while x.sum() > 1:
        x = x / 2
    return x
"""


@pytest.fixture
def library(fresh_imports: Path) -> Any:
    """A module that is imported under the hook."""
    import graphmend_hook

    (fresh_imports / "tests").mkdir()  # a file of tests keeps its name
    (fresh_imports / "tests" / "frozen_cases.py").write_text(SOURCE)
    sys.path.insert(0, str(fresh_imports / "tests"))
    graphmend_hook.install("frozen_cases", cache_dir=fresh_imports / "cache")
    import frozen_cases  # type: ignore[import-not-found]

    yield frozen_cases
    sys.path.remove(str(fresh_imports / "tests"))


def calls(*numbers: float) -> list[Any]:
    return [lambda number=number: ((torch.full((3,), number),), {}) for number in numbers]


def test_what_is_seen_of_a_program(library: Any) -> None:
    seen = frozen_programs.seen_of(frozen_programs.Program(library.clamps, calls(0.0, 2.0)))
    assert seen["graphs"] == [1, 1]
    ((place, attempts),) = seen["frames"]
    assert place == "frozen_cases.py:4 clamps" and attempts >= 1
    assert seen["breaks"] == {} and seen["errors"] == [] and seen["seconds"] > 0
    seen = frozen_programs.seen_of(frozen_programs.Program(library.halves, calls(0.0, 2.0)))
    assert seen["graphs"][-1] > 1


def test_what_is_recorded_is_done_again(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_entries", "_texts", "_names"):
        monkeypatch.setattr(frozen_calls, name, {})
    monkeypatch.setenv("GRAPHMEND_FROZEN", str(tmp_path / "recorded"))
    monkeypatch.setattr(torch, "compile", torch.compile)
    frozen_calls.pytest_configure()
    compiled = torch.compile(library.clamps, backend="eager")
    given = torch.ones(3)
    assert torch.equal(compiled(given), given * 2 + 1)
    given.add_(5)  # what was given is kept as it was
    torch.compile(lambda x: x + 1, backend="eager")(given)  # stands in no mended module
    frozen_calls.pytest_unconfigure()
    recorded = frozen_calls.Recorded(tmp_path / "recorded")
    assert recorded.modules == ("frozen_cases",)
    assert recorded.names() == ["frozen_cases.clamps"]
    (again,) = recorded.entries("frozen_cases.clamps")
    (call,) = again.calls()
    ((x,), _) = call()
    assert again.function is library.clamps and torch.equal(x, torch.ones(3))


def test_what_is_emitted(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(SOURCE)
    (tmp_path / "empty.py").write_text("x = 1\n")
    found = frozen.emitted(tmp_path)
    assert [*found] == ["library.py"]
    rule, function, line, code, text = found["library.py"]["sites"][0]
    assert (rule, function, line, code) == ("where", "clamps", 6, "") and "y + 1" in text


def run(**more: Any) -> dict[str, Any]:
    seen = {"graphs": [1], "operations": [[2, "a"]], "breaks": {}, "frames": [["f.py:1 f", 2]], "errors": []}
    return {"runs": [{**seen, "seconds": 1.0, **more}], "left": [], "not_relied_on": []}


BEFORE: dict[str, Any] = {
    "versions": {"torch": "1"},
    "emitted": {"lib": {"a.py": {"code": "1", "sites": [["where", "f", 5, "", "GM.old(x)"]]}}},
    "decided": {"rows": {"t5": run(), "bart": run()}},
}


def changed(**parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BEFORE), **parts}


@pytest.mark.parametrize(
    ("after", "differs", "said"),
    [
        (changed(), False, "2 programs"),
        (changed(decided={"rows": {"t5": run(seconds=2.0), "bart": run()}}), False, "median 1.500"),
        (changed(decided={"rows": {"t5": run()}}), False, "1 that only BEFORE has"),
        (changed(decided={"rows": {"t5": run(frames=[["f.py:1 f", 3]])}}), True, "t5: frames: -"),
        (changed(decided={"rows": {"t5": run(graphs=[2])}}), True, "t5: graphs"),
        (changed(decided={"rows": {"t5": {"died": "killed"}}}), True, "t5: died: None -> killed"),
        (
            changed(emitted={"lib": {"a.py": {"code": "2", "sites": [["where", "f", 5, "", "GM.new(x)"]]}}}),
            False,
            "words",
        ),
        (
            changed(emitted={"lib": {"a.py": {"code": "", "sites": [["where", "f", 5, "R1", ""]]}}}),
            True,
            "mended -> R1",
        ),
        (changed(emitted={"lib": {}}), True, "mended -> no site"),
    ],
)
def test_a_comparison(after: dict[str, Any], differs: bool, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert frozen.compare(BEFORE, after) == differs
    assert said in capsys.readouterr().out


def test_words_that_were_renamed(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(json.dumps(BEFORE))
    found = frozen._read(path, {"GM.old": "GM.new"})
    assert found["emitted"]["lib"]["a.py"]["sites"][0][4] == "GM.new(x)"
