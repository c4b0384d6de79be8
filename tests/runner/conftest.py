"""Runs a program under plain python and under ``python -m graphmend_hook``, and compares what can be seen of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Completed = subprocess.CompletedProcess[str]
_HOOK = ("-m", "graphmend_hook")
# Frames of runpy, which plain `python -m` shows above the program's own; 3.10 shows their source lines too.
_RUNPY = re.compile(r'  File "[^"]*runpy(?:\.py|>)", line \d+, in \w+\n(?:    .*\n)*')
# Puts a file in the place of stdin, then becomes the python that is to be tested.
_WITH_STDIN = (
    "import os, sys; os.dup2(os.open(sys.argv[1], os.O_RDONLY), 0);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


@pytest.fixture
def hooked(python: Callable[..., Completed]) -> Callable[..., Completed]:
    """Run ``python *flags -m graphmend_hook *arguments``."""

    def run(*arguments: str, flags: Sequence[str] = (), cwd: Path | None = None, **env: str) -> Completed:
        return python(*flags, *_HOOK, *arguments, cwd=cwd, **env)

    return run


@pytest.fixture
def same(python: Callable[..., Completed]) -> Callable[..., Completed]:
    """Run a program without and with the hook, demand that both look the same, and give the run with the hook.

    flags: options of python itself.  options: options of graphmend_hook.  stdin: a file to read as stdin.
    """

    def compare(
        *program: str,
        flags: Sequence[str] = (),
        options: Sequence[str] = (),
        stdin: Path | None = None,
        cwd: Path | None = None,
        **env: str,
    ) -> Completed:
        before = ("-c", _WITH_STDIN, str(stdin)) if stdin else ()
        plain = python(*before, *flags, *program, cwd=cwd, **env)
        ours = python(*before, *flags, *_HOOK, *options, *program, cwd=cwd, **env)
        assert "graphmend" not in ours.stderr
        assert _visible(ours) == _visible(plain)
        return ours

    return compare


def _visible(run: Completed) -> str:
    """Everything that can be seen of a run, as one text, for a readable difference."""
    return f"exit status {run.returncode}\n{run.stdout}\n---\n{_RUNPY.sub('', run.stderr)}"
