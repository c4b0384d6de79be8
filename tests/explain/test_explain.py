"""`graphmend explain` names what became of each break, and what it advises helps."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observations import data_of

from graphmend_hook.cli import main
from graphmend_hook.product.commands import explain as command
from graphmend_hook.product.explain.join import REMAINING, Break, Explanation

pytest.importorskip("torch")

Write = Callable[[str, str], Path]
Python = Callable[..., "subprocess.CompletedProcess[str]"]

# Five kinds of break: a log that is mended, one that is switched off, an operation that no rule is about, a log
# in a module that is not allowlisted, and one in a module that is imported before the hook.
MODEL = """\
import logging
import torch
import elsewhere, early
logger = logging.getLogger(__name__)

class Model(torch.nn.Module):
    def forward(self, x):
        x = x + 1
        logger.warning("in the model")
        x = x - 1
        logger.warning("kept")  # graphmend: off
        x = elsewhere.logged(x)
        x = early.logged(x)
        return torch.linalg.lstsq(x[:, None], x[:, None])[0].sum()
"""
LOGGED = """\
import logging
logger = logging.getLogger(__name__)

def logged(x):
    x = x * 2
    logger.warning("in %s", __name__)
    return x + 1
"""
TRAIN = """\
import sys
sys.path.insert(0, sys.argv[1])
import early
import graphmend_hook
graphmend_hook.install("early")
import torch, model
with torch.no_grad():
    print(torch.compile(model.Model(), backend="eager")(torch.ones(3)))
"""


@pytest.fixture
def program(write: Write) -> list[str]:
    write("app/model.py", MODEL)
    train = write("app/train.py", TRAIN)
    write("libs/elsewhere.py", LOGGED)
    libs = write("libs/early.py", LOGGED).parent
    return [str(train), str(libs)]


@pytest.fixture
def explained(python: Python, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], str]]:
    """The explanation as JSON and as text."""

    def run(*words: str, status: int = 0, **env: str) -> tuple[dict[str, Any], str]:
        out = tmp_path / "explained.json"
        done = python(*GRAPHMEND, "explain", f"--json={out}", *words, COLUMNS="200", **env)
        assert done.returncode == status, done.stderr
        return json.loads(out.read_text()), done.stdout

    return run


GRAPHMEND = ("-c", "import sys; from graphmend_hook.cli import main; sys.exit(main())")


def by_place(explanation: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(Path(each["file"]).name, each["line"]): each for each in explanation["breaks"]}


@pytest.mark.slow
def test_each_break_is_named_and_the_advice_helps(
    explained: Any, program: list[str], write: Write, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    found, text = explained(f"--html={page}", *program, RANK="0", WORLD_SIZE="2")  # no report at exit, with a rank
    assert found["backends"] == ["eager"]
    data = data_of(page.read_text())
    assert {each["line"] for cause in data["causes"] for each in cause["breaks"]} == {9, 11, 6, 14}
    assert [name for name, source in data["sources"].items() if source[1]] == [
        f"{file}:Model.forward" for file, each in enumerate(data["files"]) if each["where"].endswith("model.py")
    ]
    breaks = by_place(found)
    said = {place: (each["state"], each["code"], each["said"], each["advice"]) for place, each in breaks.items()}
    assert said["model.py", 9] == ("removed", "", "mended by [defer] at app/model.py:9", "")
    state, code, words, advice = said["model.py", 11]
    assert (state, code, advice) == ("remaining", "GM100-R01", "graphmend rules GM100-R01")
    state, code, words, advice = said["elsewhere.py", 6]
    assert (state, words) == ("remaining", "elsewhere is not among the modules that are mended")
    flag = found["flag"]
    assert flag.split("=")[1].split(",")[0] == "transformers"
    assert {"early", "elsewhere", str(Path(program[0]).parent)} <= set(flag.split("=")[1].split(","))
    assert advice == f"add it: {flag}"
    state, code, words, advice = said["early.py", 6]
    assert (state, code) == ("remaining", "GM001")
    assert words == "early was imported before the hook was installed, and runs as it is"
    state, code, words, advice = said["model.py", 14]
    assert (state, code, words) == ("remaining", "", "no rule is about this kind of statement")
    assert advice.startswith("PyTorch's hint: ")
    assert len(said) == 5
    (region,) = found["regions"]
    assert region["name"] == "Model"
    before, after = region["graphs"]
    assert before > after > 1
    for place in ("model.py:11", "elsewhere.py:6", "early.py:6", "model.py:14"):
        assert place in text

    write("app/model.py", MODEL.replace("  # graphmend: off", ""))
    write("app/train.py", TRAIN.replace('import early\nimport graphmend_hook\ngraphmend_hook.install("early")\n', ""))
    found, _ = explained(flag, *program)
    assert {place: each["state"] for place, each in by_place(found).items() if each["state"] != "removed"} == {
        ("model.py", 14): "remaining"
    }


def test_statuses_and_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def found(*lines: int) -> Explanation:
        breaks = [Break("/m.py", n, "f", f"stop({n})", "K", "why", REMAINING, (1, 1)) for n in lines]
        return Explanation((), (), tuple(breaks), {}, {})

    def status(known: Explanation, *words: str) -> int:
        monkeypatch.setattr(command, "_explain", lambda _options: known)
        return main(["explain", *words, "train.py"])

    baseline = f"--baseline={tmp_path / 'known.json'}"
    assert status(found(1)) == 0
    assert status(found(1), "--fail-on-break") == 1
    assert status(found(), "--fail-on-break") == 0
    assert status(found(1, 2), baseline, "--update-baseline") == 0
    assert status(found(1, 2), baseline) == status(found(2), baseline) == 0
    assert status(found(1, 2, 3), baseline) == 1
    assert "1 break more than" in capsys.readouterr().err
    (tmp_path / "known.json").write_text("[]")
    assert status(found(1), baseline) == 2
    assert "is not a baseline; make it anew with --update-baseline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is no program to run; name a script, or use -m MODULE or -c CODE"),
        (("--update-baseline", "x.py"), "--update-baseline needs --baseline FILE, the file to write"),
        (("--baseline=missing.json", "x.py"), "--baseline: cannot read missing.json: No such file or directory; make"),
        (
            ("-c", "import sys; sys.exit('no')"),
            "without the hook, the program ended with status 1; its last words:\nno",
        ),
        (("-c", "1"), "the program compiled nothing: nowhere in it did torch.compile meet a function to trace"),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_explained(python: Python, words: tuple[str, ...], message: str) -> None:
    done = python(*GRAPHMEND, "explain", *words)
    assert done.returncode == 2
    assert f"graphmend explain: error: {message}" in done.stderr
    assert ("graphmend explain: running without the hook ..." in done.stderr) == (words[:1] == ("-c",))
    assert "Traceback" not in done.stderr


SKIPPED = """\
import torch
def f(x):
    for i in range(2):
        x = torch.linalg.lstsq(x[:, None], x[:, None])[0][:, 0] + i
    return x
print(torch.compile(f, backend="eager")(torch.ones(3)))
"""


@pytest.mark.slow
def test_a_frame_that_dynamo_gives_up_has_no_graph(explained: Any, write: Write) -> None:
    """A break in a loop: Dynamo's own count would be that of a function that is one graph."""
    found, _ = explained(str(write("app/loop.py", SKIPPED)))
    (region,) = found["regions"]
    assert region["graphs"] == [0, 0]
    assert [each["state"] for each in found["breaks"]] == ["remaining"]


AGAIN = """\
import torch
def f(x, n):
    return x + n
compiled = torch.compile(f, backend="eager", dynamic=False)
for n in (1, 2, 2, 3):
    compiled(torch.ones(n), n)
"""


@pytest.mark.slow
def test_graphs_of_later_calls_are_counted_apart(explained: Any, write: Write) -> None:
    found, text = explained(str(write("app/again.py", AGAIN)))
    (region,) = found["regions"]
    assert (region["graphs"], region["recompiled"]) == ([1, 1], [2, 2])
    assert "No graph break remains." in text
