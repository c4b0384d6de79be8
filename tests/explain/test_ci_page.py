"""The workflow of docs/ci.md: its commands are ones that the parser takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from graphmend_hook.cli import main
from graphmend_hook.product import commands
from graphmend_hook.product.commands import explain

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text()
COMMANDS = re.findall(r"^(?:\$| +- run:) (graphmend .*?)(?: +#.*)?$", PAGE, re.MULTILINE)


def test_the_workflow_is_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["breaks"]["steps"]
    assert [step["run"] for step in steps if "graphmend explain" in step.get("run", "")] == COMMANDS[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(explain, "run", lambda options: seen.append(options) or 0)
    assert main(shlex.split(command)[1:]) == 0
    assert seen[0].program == ["train.py"]
    assert "explain" in commands.NAMES
