"""`graphmend explain` follows the processes of a program, and ends them after so many calls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend_hook.product.explain.join import explain
from graphmend_hook.product.explain.processes import gather
from graphmend_hook.product.report.ledger import Ledger, as_json

Write = Callable[[str, str], Path]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
GRAPHMEND = ("-c", "import sys; from graphmend_hook.cli import main; sys.exit(main())")


def seen(pid: int, process: str, began: float, rank: int | None = None) -> dict[str, Any]:
    report = as_json(Ledger())
    report["processes"][0].update(pid=pid, rank=rank)
    stack = [["/app/model.py", 3, "f"]]
    return {
        "regions": [{"name": "f", "file": "/app/train.py", "line": 7, "graphs": [[[]]]}],
        "breaks": [{"kind": "Skipped call", "reason": "why", "stack": stack, "inputs": []}],
        "backends": ["eager"],
        "report": report,
        "process": process,
        "began": began,
    }


def test_what_processes_saw_is_joined_by_their_names(tmp_path: Path) -> None:
    assert gather(tmp_path) is None
    for name, document in {
        "observed": seen(1, "", 5.0),
        "4": seen(4, "worker.py", 4.0),
        "3": seen(3, "worker.py", 3.0),
        "2": seen(2, "train.py (rank 1)", 1.0, rank=1),
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "5.json.part").write_text("{")  # of one that is still writing
    found = gather(tmp_path)
    assert found is not None
    names = ("", "worker.py", "worker.py #2", "train.py (rank 1)")
    assert [region["name"] for region in found["regions"]] == ["f", *(f"f in {name}" for name in names[1:])]
    assert [process["pid"] for process in found["report"]["processes"]] == [1, 3, 4, 2]
    (met,) = explain([], found, found).breaks
    assert (met.processes, met.times) == (names, (4, 4))


WORKER = """\
import logging, sys, torch
logger = logging.getLogger(__name__)
def f(x):
    x = x + 1
    logger.warning("said")
    return x * 2
def work():
    torch.compile(f, backend="eager")(torch.ones(3))
if __name__ == "__main__":
    work()
"""
JOB = """\
import atexit, multiprocessing, subprocess, sys, threading
from pathlib import Path
import worker
if __name__ == "__main__":
    atexit.register(Path("ended").touch)
    subprocess.run([sys.executable, "worker.py"], check=True)
    process = multiprocessing.get_context("spawn").Process(target=worker.work, name="beside")
    process.start()
    process.join()
    assert process.exitcode == 0
    compiled = worker.torch.compile(worker.f, backend="eager")
    def train():
        while True:
            with open("calls", "a") as stream:
                stream.write(".")
            compiled(worker.torch.ones(3))
    threading.Thread(target=train).start()
    threading.Event().wait()  # for ever, unless it is interrupted
"""


@pytest.mark.slow
def test_children_are_followed_and_all_end_after_so_many_calls(python: Python, write: Write, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write("app/worker.py", WORKER)
    write("app/job.py", JOB)
    out = tmp_path / "explained.json"
    done = python(*GRAPHMEND, "explain", "--calls=2", f"--json={out}", "job.py", cwd=tmp_path / "app")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "app/ended").exists()
    assert (tmp_path / "app/calls").read_text() == ".." * 2
    found = json.loads(out.read_text())
    assert [region["name"] for region in found["regions"]] == ["f", "f in worker.py", "f in beside"]
    assert [region["graphs"] for region in found["regions"]] == [[2, 1]] * 3
    (gone,) = found["breaks"]
    assert (gone["state"], gone["times"]) == ("removed", [3, 0])
    assert gone["processes"] == ["", "worker.py", "beside"]
    assert "in the program itself, worker.py, beside" in done.stdout


COUNTED = """\
import torch
from graphmend_hook.engine.door.compiled_calls import call_after_each
ended = []
call_after_each(lambda: ended.append(1))
inner = torch.compile(lambda x: x + 1, backend="eager")
@torch.compile(backend="eager")
def outer(x):
    torch._dynamo.graph_break()
    return inner(x)
outer(torch.ones(2))
assert len(ended) == 1, "what a call calls is a part of it"
torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
assert len(ended) == 2
@torch.compile(backend="eager")
def fails(x):
    raise ValueError("x")
try:
    fails(torch.ones(2))
except ValueError:
    outer(torch.ones(2))
assert len(ended) == 3, "a call that fails is none, and one inside of a handler is one"
"""


@pytest.mark.slow
def test_which_calls_are_counted(python: Python) -> None:
    pytest.importorskip("torch")
    done = python("-c", COUNTED)
    assert done.returncode == 0, done.stderr


DECIDED = """\
import torch
NAMES = ["a", "b", "c", "d"]
def f(x, of):
    x = x * 2
    if NAMES[int(of["lengths"].max())] == "b":
        x = x.sin()
    return torch.linalg.lstsq(x[:, None], x[:, None])[0]
compiled = torch.compile(f, backend="eager", dynamic=False)
for number in range(3):
    compiled(torch.ones(8), {"lengths": torch.tensor([number + 1, 0])})
"""


@pytest.mark.slow
def test_the_last_line_names_the_inputs_that_free_a_break(python: Python, write: Write) -> None:
    pytest.importorskip("torch")
    program = str(write("app/decided.py", DECIDED))
    done = python(*GRAPHMEND, "explain", "--values=n", program)
    last = done.stdout.splitlines()[-1]
    option = "--values=n,lengths"
    assert last == f"0 of 2 breaks gone, 2 left; 1 of the 2 left goes with {option}, if few values are met"
    done = python(*GRAPHMEND, "explain", option, program)
    assert done.stdout.splitlines()[-1] == "1 of 2 breaks gone, 1 left"


WAITING = """\
import os, threading, worker
worker.work()
if os.environ["GRAPHMEND_DISABLE"] != "1":
    open("reached", "w").close()
    threading.Event().wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_was_seen_until_an_interrupt_is_shown(write: Write, tmp_path: Path, clean_environment: Any) -> None:
    """As Ctrl-C does at a terminal: every process of the group is interrupted."""
    pytest.importorskip("torch")
    write("app/worker.py", WORKER)
    reached = write("app/waiting.py", WAITING).with_name("reached")
    os.mkfifo(reached)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    command = [sys.executable, *GRAPHMEND, "explain", "waiting.py"]
    process = subprocess.Popen(command, cwd=reached.parent, env=clean_environment(), **streams)
    reached.read_bytes()  # returns when the program has opened it, and has closed it again
    os.killpg(process.pid, signal.SIGINT)
    shown, errors = process.communicate()
    assert process.returncode == 130
    assert errors.endswith("graphmend explain: interrupted; this is what was seen until then\n")
    assert "Traceback" not in errors
    assert shown.endswith("\nNo graph break remains.\n")
