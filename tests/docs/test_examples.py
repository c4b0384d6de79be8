"""The examples of the rules' pages, and of the README, do what stands below them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pages
import pytest

from graphmend_hook.hook.install import active
from graphmend_hook.rules.order import ORDER

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
RUNNER = Path(__file__).with_name("run_examples.py")
MEND = "@graphmend_hook.mend\n"
FEWER = re.compile(r"^Without the decorator there are (\d graphs? and \d graph breaks?)\.", re.MULTILINE)


def test_of_the_rules(python: Callable, write: Callable) -> None:
    """All in one process, as torch is slow to import: with what each page says, and without the rule."""
    expected = {}
    for rule in ORDER:
        page = pages.ROOT / "docs" / f"{rule.name}.md"
        program, shown = list(pages.blocks(page, "python", "text"))[:2]
        (without,) = FEWER.findall(page.read_text(encoding="utf-8"))
        assert MEND in program.text
        expected[f"{rule.name}.py"] = shown.text
        expected[f"without_{rule.name}.py"] = without
        write(f"{rule.name}.py", program.text)
        write(f"without_{rule.name}.py", program.text.replace(MEND, ""))
    ran = python(str(RUNNER), *expected, _GRAPHMEND_DEFECTS="raise")
    printed = dict(re.findall(r"^== (\S+)\n((?:(?!== ).*\n)*)", ran.stdout, re.MULTILINE))
    for name, text in expected.items():
        if name.startswith("without_"):
            assert f"{text}\n" in printed[name], name
        else:
            assert printed[name] == text, (name, ran.stderr)


def test_of_the_readme(python: Callable, write: Callable, fresh_imports: Path) -> None:
    """The program before has the graphs that the table says without the hook, and with it the graphs after."""
    pytest.importorskip("transformers")
    readme = pages.ROOT / "README.md"
    before, after = list(pages.blocks(readme, "python"))[:2]
    exec(compile(after.text, str(after), "exec"), {})
    assert [hook.settings.modules for hook in active()] == [("transformers",)]
    eager = before.text.replace(".eval())", '.eval(), backend="eager")')
    assert eager != before.text
    graphs = re.search(r"^\| graphs \| (\d) \| (\d) \|", readme.read_text(encoding="utf-8"), re.MULTILINE)
    script = str(write("t5.py", eager))
    ran = python("-m", "graphmend_hook", "explain", "--json", "-", script)
    assert json.loads(ran.stdout)["regions"][0]["graphs"] == [int(graphs[1]), int(graphs[2])], ran.stderr
