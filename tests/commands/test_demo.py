"""What `graphmend demo` shows of its two runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from graphmend_hook.cli import main

# By module: its status, and whether it came from the cache; None where no cache is asked.
MODULES = {"mended": True, "unchanged": False, "passed over": None, "failed": False}
SEEN = {
    "records": [],
    "first_result": 1.0,
    "equal_to_eager": True,
    "digest": "d",
    "versions": {"torch": "2", "transformers": "4"},
}


def test_a_module_that_no_cache_is_asked_about_is_no_miss(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        report = next((word.partition("=")[2] for word in command if word.startswith("--report=")), "")
        Path(command[-2]).write_text(json.dumps(SEEN | {"graphs": 1 if report else 4}))
        if report:
            modules = [{"status": status, "cached": cached} for status, cached in MODULES.items()]
            Path(report).write_text(json.dumps({"modules": modules}))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:4]]
        for line in shown.splitlines()
        if len(cells := line.split("│")) > 3
    }
    assert rows["graphs captured"] == ["4", "1"]
    assert rows["modules mended"] == ["-", "1 of 4"]
    assert rows["cache hits"] == ["-", "1 of 3"]
