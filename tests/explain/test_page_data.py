"""What the page of `graphmend explain` is given, which needs no browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from observations import broken, data_of, joined, mended, observed, region

from graphmend_hook.product.explain.causes import causes_of
from graphmend_hook.product.explain.join import NEW, REMAINING, REMOVED, Break
from graphmend_hook.product.explain.page import html
from graphmend_hook.product.explain.paired import Paired, Sources
from graphmend_hook.rewrite import active_rules, changes_of
from graphmend_hook.settings.syntax import RULE_NAMES

Write = Callable[[str, str], Path]
MODULE = """\
import logging
logger = logging.getLogger(__name__)

class Model:
    def forward(self, x):
        x = x + 1  # one
        if x.any():
            logger.warning("off")
        logger.warning("%s", x)
        return x
"""
SWEPT = """\
import torch
def experts(mask, x, out):
    for index in range(8):
        place, rows = torch.where(mask[index])
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * 2)
    while x.sum() > 1:
        x = (y := x - 1)
    return x
"""


def sources(file: Path, *sites: dict[str, Any], status: str = "mended", rules: tuple[str, ...] = RULE_NAMES) -> Sources:
    module = {"path": str(file), "status": status, "sites": sites}
    return Sources({"processes": [{"hooks": [{"rules": rules}]}], "modules": [module]})


def texts(paired: Paired | None) -> list[tuple[int, str | None, str | None]]:
    assert paired is not None
    return [
        (number, *(None if tokens is None else "".join(tokens[::2]) for tokens in sides))
        for number, *sides in paired.rows
    ]


def test_each_line_stands_beside_itself(write: Write) -> None:
    file = write("m.py", MODULE)
    paired = sources(file, mended("defer", "Model.forward", 9)).paired(str(file), "Model.forward")
    lines = texts(paired)
    assert [number for number, *_ in lines if number] == [5, 6, 7, 8, 9, 10]
    assert lines[:4] == [(5, *["def forward(self, x):"] * 2), (6, *["    x = x + 1  # one"] * 2), *lines[2:4]]
    assert (9, '    logger.warning("%s", x)', '        logger.warning("%s", x)') in lines
    added = [runs for number, _, runs in lines if not number]
    assert added[0] == "    if GM.tracing():"
    assert added[-1] == "    else:"
    assert all(written is None for number, written, _ in lines if not number)
    assert "\n".join(written for _, written, _ in lines if written) == "\n".join(
        line[4:] for line in MODULE.splitlines()[4:]
    )


def test_it_has_the_classes_of_its_tokens(write: Write) -> None:
    file = write("m.py", MODULE)
    paired = sources(file).paired(str(file), "Model.forward")
    assert paired is not None
    (number, written, runs), *_ = paired.rows
    assert (number, written, runs) == (
        5,
        ["def", "k", " ", "", "forward", "f", "(", "", "self", "b", *written[10:]],
        written,
    )
    assert paired.rows[1][1][-2:] == ["# one", "c"]


def test_only_what_the_report_says_is_mended_runs_otherwise(write: Write) -> None:
    file = write("m.py", MODULE)
    site = mended("defer", "Model.forward", 9)
    for here in (sources(file, site, status="passed over"), sources(file), sources(file, site, rules=("trap",))):
        paired = here.paired(str(file), "Model.forward")
        assert paired is not None and not paired.is_mended


def test_lines_that_are_replaced_stand_beside_what_has_come(write: Write) -> None:
    file = write("m.py", SWEPT)
    changes = changes_of(SWEPT.encode(), "m.py", active_rules(RULE_NAMES))
    sites = [mended(each.site.rule, each.site.function, each.site.line) for each in changes if each.emitted]
    lines = texts(sources(file, *sites).paired(str(file), "experts"))
    assert [number for number, *_ in lines if number] == list(range(2, 11))
    runs = {number: running for number, _, running in lines}
    assert runs[5] == "        if not (GM.compiling() and GM.sweep(rows)) and rows.shape[0] == 0:"  # both lines of it
    assert runs[6] == "            continue"
    assert runs[7] == "        out.index_add_(0, rows, x[rows] * 2)"  # a statement, and two lines more
    assert [running for number, _, running in lines if not number][-2:] == [
        "        if GM.compiling():",
        "            GM.swept()",
    ]
    assert str(runs[8]).startswith("    while (GM.decide_again(x.sum() > 1)")  # the head only
    assert runs[9] == "        x = (y := x - 1)"


def test_what_is_in_no_function_has_its_surroundings(write: Write) -> None:
    file = write("m.py", MODULE)
    paired = sources(file).paired(str(file), "<module>", 2)
    assert [number for number, *_ in texts(paired)] == list(range(1, 11))
    assert sources(file).paired(str(file), "<module>", 0) is None
    assert sources(file).paired("<string>", "f", 3) is None


def a_break(state: str, said: str, **more: Any) -> Break:
    fields = {"kind": "K", "reason": "K", "times": (1, 1), **more}
    return Break("m.py", 1, "f", "f()", state=state, said=said, **fields)


def test_what_is_left_comes_first_and_stands_by_its_cause() -> None:
    gone = [a_break(REMOVED, f"mended by [defer] at m.py:{line}") for line in range(3)]
    left = [
        a_break(REMAINING, "no rule", kind="A"),
        a_break(REMAINING, "no rule", kind="B"),
        a_break(NEW, "no rule", kind="B"),
        a_break(REMAINING, "no rule", kind="B", advice="x"),
    ]
    coded = [a_break(REMAINING, f"declined: {name}", code="GM1", advice="y") for name in "abc"]
    uncovered = [a_break(REMAINING, f"{name} is not among them", advice="add it: --modules=a") for name in "ab"]
    causes = causes_of([*gone, *left, *coded, *uncovered])
    assert [(each.state, each.title, each.advice, len(each.breaks)) for each in causes] == [
        (REMAINING, "GM1", "y", 3),
        (REMAINING, "no rule: B", "", 2),
        (REMAINING, "in modules that are not among those that are mended", "add it: --modules=a", 2),
        (REMAINING, "no rule: A", "", 1),
        (NEW, "no rule: B", "", 1),
        (REMOVED, "mended by [defer]", "", 3),
    ]
    assert [each.reason for each in causes] == ["K", "B", "K", "A", "B", ""]


def test_what_it_was_run_with(write: Write) -> None:
    file = str(write("m.py", MODULE))
    seen = observed([region("f", file, 1, [])], [])
    found = joined(seen, {**seen, "backends": ["inductor", "eager"]}, {}, "train.py", "a b")
    data = data_of(html(found))
    assert data["about"]["command"] == "train.py 'a b'"
    assert data["about"]["versions"] == {
        **{"python": "3.11.7", "torch": "2.13.0+cpu", "graphmend_hook": "0.1.0"},
        "backend": "inductor, eager",
    }
    assert not data["about"]["interrupted"]
    assert data_of(html(replace(found, interrupted=True)))["about"]["interrupted"]


def test_what_comes_from_the_program_ends_nothing(write: Write) -> None:
    evil = "</script><!--<script>/*STYLE*/POLICY"
    file = str(write("m.py", f'def f(x):\n    """{evil}"""\n    return x\n'))
    seen = observed([region(evil, file, 1, [[([(file, 2, "f")], 1)]])], [broken([(file, 3, "f")], evil, evil)])
    text = html(joined(seen, seen, {}, evil))
    assert evil not in text
    assert text.count("</script>") == 2
    assert text.count("<script") == 2
    data = data_of(text)
    assert evil in data["about"]["command"]
    assert data["regions"][0]["name"] == evil
    assert evil in json.dumps(data["sources"])


def test_a_file_and_its_callers_stand_once(write: Write) -> None:
    file = str(write("m.py", MODULE))
    breaks = [broken([("t.py", 1, "g"), (file, 9, "forward")]) for _ in range(2)]
    seen = observed([region("Model", file, 1, [])], breaks)
    data = data_of(html(joined(seen, seen, {file: []})))
    assert sorted(each["path"] for each in data["files"]) == sorted([file, "t.py"])
    ((found,),) = [cause["breaks"] for cause in data["causes"]]
    assert found["callers"] == [
        {"stack": [[data["files"].index({"path": "t.py", "where": "t.py"}), 1, "g"]], "times": 2}
    ]
    assert f"{found['file']}:Model.forward" in data["sources"]
