"""Runs a program under plain python and under ``python -m graphmend_hook``, and compares what can be seen of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Completed = subprocess.CompletedProcess[str]
_HOOK = ("-m", "graphmend_hook")
_DIFFERENCES = (
    # Frames of runpy, which plain `python -m` shows above the program's own; 3.10 shows their source lines too.
    (re.compile(r'^[ |]*  File "[^"]*runpy(?:\.py|>)", line \d+, in \w+\n(?:[ |]*    .*\n)*', re.MULTILINE), ""),
    # The head of a traceback that had no other frame: what follows is the place of a SyntaxError.
    (re.compile(r'^Traceback \(most recent call last\):\n(?=  File "[^"]*", line \d+\n)', re.MULTILINE), ""),
    # Where frames of importlib are shown (a SyntaxError under importlib.import_module), our get_code calls the stock one.
    (re.compile(r'(?:  File "<frozen importlib\._bootstrap_external>", line \d+, in get_code\n)+'), "  in get_code\n"),
    (re.compile(r"0x[0-9a-f]+"), "0xADDRESS"),
)
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
def same(python: Callable[..., Completed], tmp_path: Path) -> Callable[..., Completed]:
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
        _forget_bytecode(tmp_path)
        ours = python(*before, *flags, *_HOOK, *options, *program, cwd=cwd, **env)
        # Paths may have the word in both: a project lies where its user wants it.
        of_us = [line for line in ours.stderr.splitlines() if "graphmend" in line]
        assert set(of_us) <= set(plain.stderr.splitlines())
        assert _visible(ours) == _visible(plain)
        return ours

    return compare


def _visible(run: Completed) -> str:
    """Everything that can be seen of a run, as one text, for a readable difference."""
    text = f"exit status {run.returncode}\n{run.stdout}\n---\n{run.stderr}"
    for pattern, replacement in _DIFFERENCES:
        text = pattern.sub(replacement, text)
    return text


def _forget_bytecode(directory: Path) -> None:
    """Let the compiler, with its warnings, run again."""
    for cache in directory.rglob("__pycache__"):
        shutil.rmtree(cache)
