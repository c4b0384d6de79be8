"""Which file a process writes its report to: none of a job is lost, and nothing else is overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hook_cases import MENDABLE

from graphmend_hook.product.report import files
from graphmend_hook.product.report.ledger import Document, Ledger, as_json

Write = Callable[[str, str], Path]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
PID = os.getpid()
RANK_3 = {"RANK": "3", "WORLD_SIZE": "8"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No rank, no parent with a report, and a host with a name of its own."""
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", files._OWNER):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(files, "host_name", lambda: "node7")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def report() -> Document:
    return as_json(Ledger())


FILLED = [
    ("r.json", {}, "r.json"),
    ("r-{pid}.json", {}, "r-PID.json"),
    ("{host}/{rank}/{pid}", RANK_3, "node7/3/PID"),
    ("r-{rank}.json", {}, "r-none.json"),
    ("r-{rank}.json", {"SLURM_PROCID": "4"}, "r-4.json"),
    ("r.json", RANK_3, "r.rank3.json"),
    ("r", RANK_3, "r.rank3"),
    ("r-{host}.json", RANK_3, "r-node7.rank3.json"),
    ("r-{pid}.json", RANK_3, "r-PID.json"),
    ("r.json", {"RANK": "0", "WORLD_SIZE": "1"}, "r.json"),
    ("r.json", {"RANK": "0"}, "r.json"),
    ("r{}.json", {}, "r{}.json"),
]


@pytest.mark.parametrize(("target", "env", "expected"), FILLED)
def test_placeholders(target: str, env: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert files.fill(target) == expected.replace("PID", str(PID))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_older_report_is_replaced(report: Document, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for version in ("first", "second"):
        started = time.time() + 60  # as of a process that starts after the file was written
        files.write({**report, "version": version}, str(path), started)
        assert json.loads(path.read_text())["version"] == version
    assert names(tmp_path) == ["r.json"]


def test_report_that_another_process_wrote_meanwhile_stays(report: Document, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    started = time.time() - 60
    for _ in range(4):
        files.write(report, str(path), started)
    assert names(tmp_path) == [f"r.{PID}-2.json", f"r.{PID}-3.json", f"r.{PID}.json", "r.json"]


def test_report_that_another_process_is_writing_stays(report: Document, tmp_path: Path) -> None:
    (tmp_path / "r.json.tmp").touch()
    files.write(report, str(tmp_path / "r.json"), 0)
    assert names(tmp_path) == [f"r.{PID}.json", "r.json.tmp"]
    with pytest.raises(OSError, match=r"another process is writing there, or .*r\.json\.tmp was left behind"):
        files.replace(report, str(tmp_path / "r.json"))


@pytest.mark.parametrize("text", ["print(1)\n", "{}", '{"schema": 1}'])
def test_file_that_is_no_report_stays(text: str, report: Document, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    with pytest.raises(FileExistsError, match="there is a file that is not a report"):
        files.write(report, str(path), time.time() + 60)
    assert path.read_text() == text
    assert names(tmp_path) == ["train.py"]


def test_empty_file_is_filled(report: Document, tmp_path: Path) -> None:
    """As made by mktemp."""
    path = tmp_path / "r.json"
    path.touch()
    files.write(report, str(path), 0)
    assert json.loads(path.read_text()) == report
    assert names(tmp_path) == ["r.json"]


def test_link_stays_a_link(report: Document, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("r.json")
    files.write(report, str(tmp_path / "link.json"), 0)
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "r.json").read_text()) == report


def test_pipe_is_written_to(report: Document, tmp_path: Path) -> None:
    code = "import sys; print(open(sys.argv[1]).read())"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen([sys.executable, "-c", code, "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        files.write(report, str(tmp_path / "pipe"), 0)
        assert json.loads(reader.communicate()[0]) == report


def test_failed_write_leaves_nothing(report: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_paths: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        files.write(report, str(tmp_path / "r.json"), 0)
    assert names(tmp_path) == []


def test_permissions_are_those_of_any_file(report: Document, tmp_path: Path) -> None:
    files.write(report, str(tmp_path / "r.json"), 0)
    (tmp_path / "plain").touch()
    assert (tmp_path / "r.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_many_processes_that_end_at_once(python: Python, tmp_path: Path) -> None:
    """They share no parent that has a report, and none of their reports is lost; an old one is replaced."""
    (tmp_path / "r.json").write_bytes(files._START + b"1}")
    os.utime(tmp_path / "r.json", (0, 0))
    driver = """
import os, sys
read, write = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        import graphmend_hook
        graphmend_hook.install("app")
        os.close(write)
        os.read(read, 1)  # until all have installed it
        sys.exit()
os.close(write)
for _ in range(8):
    os.wait()
"""
    ran = python("-c", driver, GRAPHMEND_REPORT="r.json")
    assert ran.returncode == 0, ran.stderr
    pids = [json.loads(path.read_text())["processes"][0]["pid"] for path in tmp_path.glob("r*.json")]
    assert len(set(pids)) == len(pids) == 8
    assert (tmp_path / "r.json").exists()


TREE = """
import graphmend_hook, os, subprocess, sys
depth = int(sys.argv[1])
for _ in range(2 if depth else 0):
    subprocess.run([sys.executable, __file__, str(depth - 1)], check=True)
print(depth, os.getpid())
"""


def pid_in(path: Path) -> int:
    process: dict[str, Any] = json.loads(path.read_text())["processes"][0]
    return int(process["pid"])


def test_the_process_that_was_started_with_the_path_has_it(write: Write, python: Python, tmp_path: Path) -> None:
    """Its children, which end before it, have names of their own; so it is in a second run."""
    write("app.py", MENDABLE)
    tree = write("tree.py", TREE)
    expected: set[str] = set()
    for _ in "12":
        ran = python(str(tree), "2", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="out/../r.json")
        processes = [line.split() for line in ran.stdout.splitlines()]
        assert len(processes) == 7, ran.stderr
        root = int(processes[-1][1])
        assert pid_in(tmp_path / "r.json") == root
        expected |= {f"r.{pid}.json" for _depth, pid in processes if int(pid) != root}
        assert {path.name for path in tmp_path.glob("r.*.json")} == expected


def test_child_that_is_given_another_path_has_that(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = (
        "import graphmend_hook, os, subprocess, sys; child = 'import graphmend_hook'\n"
        "subprocess.run([sys.executable, '-c', child], env={**os.environ, 'GRAPHMEND_REPORT': 'other.json'})"
    )
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="r.json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {path.name for path in tmp_path.glob("*.json")} == {"r.json", "other.json"}


def test_program_that_replaces_the_process_keeps_the_path(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = "import graphmend_hook, os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import graphmend_hook'])"
    python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="r.json")
    assert {path.name for path in tmp_path.glob("*.json")} == {"r.json"}


def test_child_of_the_runner(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import app']).pid)"
    ran = python("-m", "graphmend_hook", "--modules=app", "--report=r.json", "-c", code + "; import os; os.wait()")
    assert {path.name for path in tmp_path.glob("*.json")} == {"r.json", f"r.{ran.stdout.strip()}.json"}


RANKS = """
import graphmend_hook, os, subprocess, sys
codes = ["import os, graphmend_hook; os.environ['RANK'] = '%d'" % rank for rank in range(2)]
env = {**os.environ, "WORLD_SIZE": "2"}
for code in codes:
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
"""


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("r.json", {"r.json", "r.rank0.json", "r.rank1.json"}),
        ("r-{rank}.json", {"r-none.json", "r-0.json", "r-1.json"}),
    ],
)
def test_rank_that_the_program_sets_itself(
    target: str, expected: set[str], write: Write, python: Python, tmp_path: Path
) -> None:
    """As workers of torch.multiprocessing do, long after the hook was installed."""
    write("app.py", MENDABLE)
    ran = python("-c", RANKS, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {path.name for path in tmp_path.glob("*.json")} == expected


def test_file_of_somebody_else_is_told_of_and_kept(write: Write, python: Python, tmp_path: Path) -> None:
    app = write("app.py", MENDABLE)
    code = "import graphmend_hook, app; raise SystemExit(3)"
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="app.py")
    assert ran.returncode == 3
    assert ran.stderr == (
        f"graphmend_hook: GRAPHMEND_REPORT: cannot write {app}: there is a file that is not a report; "
        "move it, or choose another path\n"
    )
    assert app.read_text() == MENDABLE
