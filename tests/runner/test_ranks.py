"""Training programs of several processes, by every launcher: each process is mended as the first one is."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
HOOK = ("-m", "graphmend_hook")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
RANKS = ("ranks.py", "torchrun")


@pytest.fixture
def run(python, tmp_path: Path):
    shutil.copy(Path(__file__).with_name("ranks.py"), tmp_path)

    def start(*words: str) -> list[str]:
        done = python(*words)
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.splitlines())

    return start


def test_two_ranks(run):
    """The launcher under the hook, whose scripts are then started anew, and ranks that the program spawns itself."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    stock = run(*TORCHRUN, *RANKS)
    assert [line.split()[:2] for line in stock] == [["0", "3"], ["1", "3"]]
    expected = [line.replace(" 3 ", " 1 ", 1) for line in stock]  # losses and records are the same
    assert run(*HOOK, *TORCHRUN, *RANKS) == expected
    assert run(*HOOK, "ranks.py", "spawn", port) == expected


def test_workers_of_a_loader(run):
    assert run(*HOOK, "ranks.py", "forkserver") == ["[1, 1]"]
