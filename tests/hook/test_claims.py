"""Many processes on one cache: each entry is made by one of them, and none waits for what does not come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hook_cases import MENDABLE, RULES

from graphmend_hook.hook import claims
from graphmend_hook.hook.cache import Cache
from graphmend_hook.hook.loader import Mender
from graphmend_hook.product.report.ledger import Ledger
from graphmend_hook.rewrite import rewrite
from graphmend_hook.settings.config import Settings

SOURCE = MENDABLE.encode()
PATH = "/somewhere/app.py"


@pytest.fixture
def mender(cache_dir: Path) -> Mender:
    return Mender(Settings(cache_dir=cache_dir), Ledger())


@pytest.fixture
def claimed(mender: Mender) -> Path:
    """The claim of a process that does not come back."""
    place = Path(mender.cache._file(PATH) + ".claim")
    place.touch()
    return place


def left_in(cache_dir: Path) -> list[str]:
    return sorted(file.suffix for file in next(cache_dir.iterdir()).iterdir())


@pytest.mark.parametrize("processes", [8, 20])
def test_processes_at_once_on_an_empty_cache(
    processes: int, write: Callable[[str, str], Path], tmp_path: Path, cache_dir: Path
) -> None:
    """Each runs the right code, and one of them has rewritten it, whichever came first."""
    path = write("app.py", MENDABLE)
    use = "import app; print(app.f(7))"
    code = f"import sys, graphmend_hook; print('ready', flush=True); sys.stdin.readline(); {use}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    report = tmp_path / "reports" / "{pid}.json"
    report.parent.mkdir()
    env.update(GRAPHMEND_MODULES="app", GRAPHMEND_CACHE_DIR=str(cache_dir), GRAPHMEND_REPORT=str(report))
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        for _ in range(processes)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    outputs = [racer.communicate() for racer in racers]
    assert {(out.decode(), err.decode()) for out, err in outputs} == {("value 7\n7\n", "")}
    seen = [json.loads(file.read_text())["processes"][0] for file in report.parent.iterdir()]
    assert sorted(each["misses"] for each in seen) == [0] * (processes - 1) + [1]
    assert left_in(cache_dir) == [".gmc"]
    found = Cache(cache_dir, RULES).get(str(path), SOURCE)
    assert found is not None
    assert found.mended == 1


def test_what_another_process_makes_is_waited_for(
    mender: Mender, claimed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def others_work(_seconds: float) -> None:
        looks.append(mender.cache.get(PATH, SOURCE))
        if len(looks) == 3:
            mender.cache.put(PATH, SOURCE, rewrite(SOURCE, PATH, RULES))
            claimed.unlink()

    monkeypatch.setattr(claims.time, "sleep", others_work)
    result, cached = mender.result(PATH, SOURCE)
    assert (result.mended, cached, looks) == (1, True, [None, None, None])


def test_one_that_ended_without_an_entry_is_no_hindrance(
    mender: Mender, claimed: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims.time, "sleep", lambda _seconds: claimed.unlink())
    assert mender.result(PATH, SOURCE)[1] is False
    assert left_in(cache_dir) == [".gmc"]


def test_patience_ends_once(
    mender: Mender, claimed: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A claim that nobody gives up, as that of a killed process, costs a process its patience, and is removed."""
    now = [0.0]
    monkeypatch.setattr(claims.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(claims.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    other = Path(mender.cache._file("/somewhere/other.py") + ".claim")
    other.touch()
    with caplog.at_level("INFO", logger="graphmend_hook"):
        assert mender.result(PATH, SOURCE)[1] is False
    assert claims.PATIENCE < now[0] < claims.PATIENCE + 0.1
    assert "waits no more" in caplog.text
    waited = now[0]
    assert mender.result("/somewhere/other.py", SOURCE)[1] is False
    assert now[0] == waited
    assert left_in(cache_dir) == [".claim", ".gmc", ".gmc"]  # the other claim stays: nobody waited for it


def test_a_claim_ends_with_what_it_was_made_for(mender: Mender, cache_dir: Path) -> None:
    with pytest.raises(SyntaxError):
        mender.result(PATH, SOURCE + b"\nprint((")
    assert left_in(cache_dir) == []


def test_where_nobody_can_write_each_goes_on(mender: Mender, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> int:
        raise PermissionError("read-only")

    with monkeypatch.context() as patched:
        patched.setattr(claims.os, "open", refuse)
        with mender.cache.claim(PATH):
            assert not list(cache_dir.glob("*/*"))
    mender.cache.writable = False
    assert mender.result("/somewhere/other.py", SOURCE)[1] is False
