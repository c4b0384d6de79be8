"""The ratchet: what is known of may become less, and each form that a service for CI reads says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graphmend_hook.cli import main
from graphmend_hook.product.commands import explain as command
from graphmend_hook.product.explain.join import REMAINING, REMOVED, Break, Explanation

pytest.importorskip("torch")


def explanation(**times: int) -> Explanation:
    """A break for each name, met so often; one that is gone where that is 0."""
    breaks = [
        Break(
            "/m.py", 3, "f", f"stop({name})", "K: x", "why", REMAINING if count else REMOVED, (1, count), said="a,b\nc%"
        )
        for name, count in times.items()
    ]
    return Explanation((), (), tuple(breaks), {}, {})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The exit status of `graphmend explain` where the program has the breaks that are named."""
    monkeypatch.chdir(tmp_path)

    def status(found: Explanation, *words: str) -> int:
        monkeypatch.setattr(command, "_explain", lambda _options: found)
        return main(["explain", *words, "train.py"])

    return status


def test_more_of_the_same_is_new(run: Any, capsys: Any) -> None:
    assert run(explanation(a=2, b=1), "--baseline=k", "--update-baseline") == 0
    assert run(explanation(a=2, b=1), "--baseline=k") == 0
    assert "no break more than k knows of" in capsys.readouterr().err
    assert run(explanation(a=2, b=1), "--baseline=k", "--fail-on-break") == 1
    capsys.readouterr()
    assert run(explanation(a=3, b=1), "--baseline=k") == 1
    assert "1 break more than k knows of:\n  m:f: stop(a) [K: x] (1)\n" in capsys.readouterr().err


def test_what_is_fixed_is_told_and_written_down(run: Any, capsys: Any) -> None:
    assert run(explanation(a=2, b=1), "--baseline=k", "--update-baseline") == 0
    assert run(explanation(a=1, b=0), "--baseline=k") == 0
    said = capsys.readouterr().err
    assert "m:f: stop(a) [K: x] (1 fewer)" in said
    assert "m:f: stop(b) [K: x] (1 fewer)" in said
    assert run(explanation(a=1), "--baseline=k", "--strict-baseline") == 1
    assert run(explanation(a=1), "--baseline=k", "--update-baseline") == 0
    assert run(explanation(a=1), "--baseline=k", "--strict-baseline") == 0
    assert run(explanation(a=2), "--baseline=k") == 1


def test_a_baseline_without_counts_knows_each_break_any_number_of_times(run: Any, capsys: Any) -> None:
    Path("k").write_text(json.dumps({"schema": 1, "breaks": ["m:f: stop(a) [K: x]", "m:f: gone [K: x]"]}))
    assert run(explanation(a=7), "--baseline=k") == 0
    assert run(explanation(a=7, b=1), "--baseline=k") == 1
    assert run(explanation(a=7), "--baseline=k", "--strict-baseline") == 1
    assert "m:f: gone [K: x]\n" in capsys.readouterr().err


def test_a_baseline_of_another_version_is_refused(run: Any, capsys: Any) -> None:
    Path("k").write_text(json.dumps({"schema": 99, "breaks": {}}))
    assert run(explanation(a=1), "--baseline=k") == 2
    assert "k has schema 99, which this version does not know" in capsys.readouterr().err


def test_annotations_of_github(run: Any, capsys: Any) -> None:
    assert run(explanation(a=1, b=1, gone=0), "--format=github", "--fail-on-break") == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == ("::error file=/m.py,line=3,title=graph break%3A K%3A x::stop(a)%0ADynamo: K: x%0Aa,b%0Ac%25")
    assert second.startswith("::error file=/m.py,line=3")
    assert run(explanation(a=1), "--format=github") == 0
    assert capsys.readouterr().out.startswith("::warning ")


def test_sarif(run: Any, capsys: Any) -> None:
    Path("k").write_text(json.dumps({"schema": 2, "breaks": {"m:f: stop(a) [K: x]": 1}}))
    assert run(explanation(a=1, b=1), "--format=sarif", "--baseline=k") == 1
    (log,) = json.loads(capsys.readouterr().out)["runs"]
    assert [each["level"] for each in log["results"]] == ["warning", "error"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["K: x"]
    place = log["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("file:///m.py", 3)


def test_junit(run: Any, capsys: Any) -> None:
    Path("k").write_text(json.dumps({"schema": 2, "breaks": {"m:f: stop(a) [K: x]": 1}}))
    assert run(explanation(a=1, b=1, gone=0), "--format=junit", "--baseline=k") == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite] == [["skipped"], ["failure"], []]


def test_json_alone_on_stdout(run: Any, capsys: Any) -> None:
    assert run(explanation(a=1), "--json", "-") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["breaks"][0]["text"] == "stop(a)"
    assert "stop(a)" in said.err
    assert run(explanation(a=1), "--json=-", "--format=github") == 2
