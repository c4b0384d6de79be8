"""The programs of docs/serving.md, in fresh processes: each prints what stands below it in the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
PROGRAMS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
SCREENS = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```console\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_section_has_a_screen() -> None:
    assert len(SCREENS) == PAGE.count("\n## ")
    assert len(PROGRAMS) == len(SCREENS) + 1  # and the model


@pytest.mark.parametrize("screen", [screen for _, screen in SCREENS], ids=[title for title, _ in SCREENS])
def test_prints_what_the_page_says(screen: str, tmp_path: Path) -> None:
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAPHMEND", "TORCH"))}
    env["PATH"] = f"{python.parent}:{env['PATH']}"
    env["GRAPHMEND_CACHE_DIR"] = str(tmp_path / "cache")
    for part in re.split(r"^\$ ", screen, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.returncode) == (expected, 0), ran.stderr
