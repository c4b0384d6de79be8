"""The texts that a user can see, each pinned to a file in `texts`, where a person can read them one after the other.

``UPDATE_TEXTS=1 pytest tests/commands/test_texts.py`` writes the files anew; look at the difference.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from rich.console import Console

from graphmend_hook import cli
from graphmend_hook.diagnostics import RULE_OF_CODE, Outcome
from graphmend_hook.product import commands
from graphmend_hook.product.commands import rules as manual
from graphmend_hook.product.explain.baseline import compare
from graphmend_hook.product.explain.join import NEW, REMAINING, REMOVED, Break, Explanation, Region
from graphmend_hook.product.explain.text import show, show_compared
from graphmend_hook.product.explain.verdicts import Verdicts
from graphmend_hook.product.report.text import PLAIN
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.rules.codes import REFUSALS
from graphmend_hook.settings.config import RULE_NAMES

HERE = Path(__file__).parent
CASES = [HERE / "declined_cases.py", *sorted((HERE.parent / "compiled").glob("*_cases.py"))]
COLUMNS = {"COLUMNS": "120"}


def help_of(*words: str) -> str:
    out = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS), contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    return out.getvalue()


def help_texts() -> Iterator[str]:
    """What ``--help`` says of each command, and what the pytest plugin adds to pytest's own."""
    actions = (("cache", "info"), ("cache", "clear"), ("cache", "warm"), ("report", "show"), ("report", "merge"))
    for words in ((), ("run",), *((name,) for name in commands.NAMES), *actions):
        yield f"$ graphmend {' '.join((*words, '--help'))}\n{help_of(*words)}"
    command = [sys.executable, "-m", "pytest", "--help", "-p", "no:cacheprovider"]
    told = subprocess.run(command, env={**os.environ, **COLUMNS}, capture_output=True, text=True, check=True).stdout
    options = told[told.index("graph breaks (graphmend_hook):") :]
    yield f"$ pytest --help\n{options[: options.index(chr(10) + chr(10))]}\n"
    yield "".join(f"{line}\n" for line in told.splitlines() if line.strip().startswith("graphmend_"))


def codes() -> Iterator[str]:
    for code in manual.codes().values():
        yield f"{code.code} [{code.rule}] {code.sentence}\n"


def declines() -> Iterator[str]:
    """Why the statements of the cases that the rules decline are declined."""
    found = {
        f"{site.code} {site.reason}\n"
        for path in CASES
        for site in rewrite(path.read_bytes(), str(path), active_rules(RULE_NAMES)).sites
        if site.outcome is Outcome.DECLINED
    }
    return iter(sorted(found))


def verdicts() -> Iterator[str]:
    """What is said of a break, and what to do about it."""
    site = {"rule": "where", "function": "f", "line": 1, "outcome": "declined", "code": "GM102-R07", "reason": "why"}
    mended = {**site, "line": 2, "outcome": "mended", "code": "", "reason": ""}
    states = ("mended", "imported too early", "not eligible", "failed")
    report = {
        "modules": [
            {"name": state, "path": f"/{state}.py", "status": state, "why": "why", "sites": [site, mended]}
            for state in states
        ],
        "traced": [{"path": "/mended.py", "line": 3, "code": "GM102-T04", "reason": "why"}],
    }
    known = Verdicts(report)
    hint = "Explanation: e\n  Hint: turn it round.\n"
    for file, line, reason in (
        *(("/mended.py", line, "") for line in (1, 2, 3, 4)),
        ("/mended.py", 4, hint),
        *((f"/{state}.py", 9, "") for state in states[1:]),
        ("/elsewhere.py", 1, ""),
    ):
        code, told, advice = known.of((file, line), [(file, line, "f")], reason)
        yield f"{code or '-'} {told} -> {advice}\n"
    for line in (2, 3):
        yield f"- {known.of_removed([('/mended.py', line, 'f')]).said}\n"


def explanation() -> Iterator[str]:
    """An explanation on a terminal without colours."""
    reason = "Attempted to call a skipped function\nExplanation: Dynamo does not know how to trace it.\nHint: none"
    breaks = [
        Break(
            "/app/model.py",
            number,
            "Model.forward",
            "log(x)",
            "Skipped call",
            reason,
            state,
            times,
            code,
            "said",
            "do",
            (),
            who,
            values,
        )
        for number, (state, times, code, who, values) in enumerate(
            [
                (REMOVED, (2, 0), "", ("",), ()),
                (REMAINING, (2, 3), "GM102-R02", ("", "worker.py (rank 1)"), ()),
                (REMAINING, (1, 1), "GM104-T02", ("",), ("lengths", "n")),
                (NEW, (0, 1), "", ("",), ()),
            ],
            1,
        )
    ]
    regions = (
        Region("Model", "/app/train.py", 7, (5, 2), (1, 0), (20, 20)),
        Region("(compiled without torch.compile)", "", 0, (0, 1), (0, 0), (0, 3)),
    )
    for found in (breaks, breaks[:1]):
        written = io.StringIO()
        show(
            Explanation((), regions, tuple(found), {}, {}, "", "--values=lengths,n"),
            Console(file=written, width=110, **PLAIN),
        )
        yield "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"
    written = io.StringIO()
    show_compared(
        compare({breaks[1].key: 1, "gone": 2}, breaks[1:]), "known.json", Console(file=written, width=110, **PLAIN)
    )
    yield written.getvalue()


def check(name: str, texts: Callable[[], Iterator[str]]) -> None:
    file = HERE / "texts" / name
    found = "\n".join(texts()) if name in ("help.txt", "explanation.txt") else "".join(texts())
    if os.environ.get("UPDATE_TEXTS"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), "if it is meant: UPDATE_TEXTS=1, and look at the difference"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse words its help by its version")
def test_help() -> None:
    check("help.txt", help_texts)


def test_codes() -> None:
    check("codes.txt", codes)


def test_declines() -> None:
    check("declines.txt", declines)


def test_verdicts() -> None:
    check("verdicts.txt", verdicts)


def test_explanation() -> None:
    check("explanation.txt", explanation)


def test_the_report_knows_the_rule_of_every_refusal() -> None:
    known = {code.code.partition("-")[0]: code.rule for code in manual.codes().values() if "-T" in code.code}
    assert known == {**RULE_OF_CODE, "GM100": ""}
    assert {code.partition("-")[0] for code in REFUSALS} == known.keys()
    assert {*RULE_OF_CODE.values()} == {*RULE_NAMES}


def test_texts_of_codes_load_no_rule_and_no_torch(python: Any) -> None:
    done = python("-c", "import sys, graphmend_hook.rules.codes; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "torch" not in loaded
    assert {name.rpartition(".")[2] for name in loaded if name.startswith("graphmend_hook.rules.")} == {
        *("defer", "where", "grad", "shared", "sweep", "trap", "value", "codes"),
    }
