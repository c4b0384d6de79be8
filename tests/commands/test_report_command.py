"""``graphmend report``: tables of files, one report of a job, and what is said about files that are none."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend_hook import cli
from graphmend_hook.product.commands.report import ReportError, load, merge
from graphmend_hook.product.report import ledger
from graphmend_hook.version import __version__

Document = dict[str, Any]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
SITE = {"rule": "defer", "function": "f", "line": 2, "outcome": "mended", "code": "", "reason": ""}
DECLINED = {**SITE, "line": 9, "outcome": "declined", "code": "GM101-R02", "reason": "it has *args"}


def module(name: str, *sites: Document, **fields: Any) -> Document:
    status = fields.pop("status", "mended")
    entry = {"name": name, "path": f"/{name}.py", "status": status, "cached": True, "seconds": 0.25, "why": ""}
    return {**entry, "sites": list(sites), "processes": [0], **fields}


def report(pid: int, *modules: Document, host: str = "node1", rank: int | None = None) -> Document:
    process = {
        **{"pid": pid, "host": host, "rank": rank, "local_rank": None, "world_size": 2, "argv": ["python", "x.py"]},
        **{"version": __version__, "python": "3.11.9", "torch": None, "hooks": []},
        **{"started": "2025-01-31T12:00:00Z", "ended": "2025-01-31T12:01:00Z"},
        **{"hits": sum(entry["cached"] is True for entry in modules), "misses": 1, "seconds": 0.5},
    }
    left = {"rule": "defer", "code": "GM101-T04", "reason": "its text may change", "path": "/a.py", "line": 2}
    traced = [{**left, "function": "f", "processes": [0]}]
    return {"schema": 2, "version": __version__, "processes": [process], "modules": list(modules), "traced": traced}


ONE = report(11, module("a", SITE), module("b", SITE, DECLINED), rank=0)
TWO = report(
    *(12, module("a", SITE, cached=False, seconds=0.5), module("b", status="imported too early", cached=None)),
    **{"host": "node2", "rank": 1},
)
THREE = report(13, module("b", SITE, DECLINED, cached=None), module("c", SITE))


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")

    def save_file(name: str, content: Any) -> str:
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return name

    return save_file


def test_show(save: Any, capsys: pytest.CaptureFixture[str]) -> None:
    files = [save("one.json", ONE), save("three.json", THREE)]
    assert cli.main(["report", "show", *files]) == 0
    shown, error = capsys.readouterr()
    assert error == ""
    head = f"graphmend_hook {__version__}, process"
    first, _, second = shown.partition("\nthree.json\n")
    assert first.startswith(
        f"one.json\n{head} 11, rank 0 of 2\n2 sites mended in 2 of 2 modules; cache: 2 hits, 1 miss;"
    )
    assert second.startswith(f"{head} 13\n2 sites mended in 2 of 2 modules; cache: 1 hit, 1 miss; 500 ms\n")
    assert "\ndeclined\n  GM101-R02, 1 site: it has *args\n    /b.py:9 in f\n" in second


MERGED = f"""\
graphmend_hook {__version__}, 3 processes on 2 hosts
2 sites mended in 3 of 3 modules; cache: 3 hits, 3 misses; 1500 ms

process  host   rank  mended  hits  misses   ms
  11     node1     0       2     2       1  500
  12     node2     1       1     0       1  500
  13     node1             2     1       1  500

modules               3
  mended              3
  unchanged           0
  passed over         0
  not eligible        0
  imported too early  1
  failed              0

sites    mended  declined  left while tracing
  defer       2         1                   1

declined
  GM101-R02, 1 site: it has *args
    /b.py:9 in f

left while tracing
  GM101-T04, 1 site: its text may change
    /a.py:2 in f

imported too early
  1 module: import graphmend_hook (or call graphmend_hook.install) before it, start the program with python -m graphmend_hook, or mend it as it is by install(..., late=True) or GRAPHMEND_LATE=1; `graphmend doctor` names who imports it
    b (/b.py)
"""


def test_merge(save: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [save(f"{number}.json", part) for number, part in enumerate((ONE, TWO, THREE))]
    assert cli.main(["report", "merge", *files, "-o", "job.json"]) == 0
    shown, error = capsys.readouterr()
    assert (shown, error) == (MERGED, "")
    united = json.loads((tmp_path / "job.json").read_text(encoding="utf-8"))
    assert united == merge([("", ONE), ("", TWO), ("", THREE)])
    assert sorted(os.listdir(tmp_path)) == ["0.json", "1.json", "2.json", "job.json"]


def test_what_merge_unites() -> None:
    before = copy.deepcopy((ONE, TWO, THREE))
    united = merge([("one", ONE), ("two", TWO), ("three", THREE)])
    assert [process["pid"] for process in united["processes"]] == [11, 12, 13]
    facts = [(m["name"], m["status"], m["cached"], m["seconds"], m["processes"]) for m in united["modules"]]
    assert facts == [
        ("a", "mended", False, 0.75, [0, 1]),
        ("b", "mended", True, 0.5, [0, 2]),
        ("b", "imported too early", None, 0.25, [1]),
        ("c", "mended", True, 0.25, [2]),
    ]
    assert [item["processes"] for item in united["traced"]] == [[0, 1, 2]]
    assert before == (ONE, TWO, THREE)


def test_a_site_is_left_in_a_job_if_one_process_left_it() -> None:
    """The ranks of a job have one entry for a module, whichever of them has traced it."""
    left = {**SITE, "outcome": "left while tracing", "code": "GM101-T04", "reason": "its text may change"}
    there, elsewhere = report(11, module("a", left)), {**report(12, module("a", SITE)), "traced": []}
    for parts in ((there, elsewhere), (elsewhere, there)):
        (united,) = merge([("one", parts[0]), ("two", parts[1])])["modules"]
        assert (united["sites"], united["processes"]) == ([left], [0, 1])


def test_sites_that_differ_are_kept_apart() -> None:
    one, other = (
        {**report(11, module("a", SITE)), "traced": []},
        report(12, module("a", DECLINED, status="unchanged")),
    )
    united = merge([("one", one), ("two", {**other, "traced": []})])
    assert [(m["status"], m["sites"], m["processes"]) for m in united["modules"]] == [
        ("mended", [SITE], [0]),
        ("unchanged", [DECLINED], [1]),
    ]


def test_modules_of_one_name_and_two_files_are_kept_apart() -> None:
    parts = [report(pid, module("__main__", SITE, path=f"/{pid}.py")) for pid in (11, 12)]
    assert [m["path"] for m in merge([("one", parts[0]), ("two", parts[1])])["modules"]] == ["/11.py", "/12.py"]


def test_a_merged_report_can_be_merged_again() -> None:
    whole = merge([("", ONE), ("", TWO), ("", THREE)])
    assert merge([("", merge([("", ONE), ("", TWO)])), ("", THREE)]) == whole
    assert merge([("", whole)]) == whole


def test_a_merged_report_is_as_the_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(ledger.__file__).with_name("schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(merge([("", ONE), ("", TWO), ("", THREE)]), schema)


def test_one_process_in_two_files_is_refused(save: Any, capsys: pytest.CaptureFixture[str]) -> None:
    files = [save("one.json", ONE), save("again.json", merge([("", THREE), ("", ONE)]))]
    assert cli.main(["report", "merge", *files]) == 2
    expected = "again.json: process 11 of node1 is in one.json too; give each report once\n"
    assert capsys.readouterr().err == f"graphmend report: error: {expected}"


def changed(place: str, value: Any = None) -> Document:
    """ONE with another value at `place`, or without it."""
    changed = copy.deepcopy(ONE)
    *path, last = (int(key) if key.isdecimal() else key for key in place.split("."))
    part: Any = changed
    for key in path:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return changed


NO_REPORT = "this is not a report of graphmend_hook: it has no field 'schema'"
BAD = {
    "empty": ("", "this is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "cut": ('{"schema": 1, ', "this is not JSON: Expecting property name enclosed in double quotes: line 1 column 15 "),
    "list": ([1], NO_REPORT),
    "number": (1, NO_REPORT),
    "other JSON": ({"modules": []}, NO_REPORT),
    "newer": (
        {"schema": 3},
        f"its schema is 3, and graphmend_hook {__version__} reads 2; use the version that wrote it",
    ),
    "of another field": (changed("modules"), "there is no field 'modules'"),
    "no process": (changed("processes", []), "processes is empty"),
    "no pid": (changed("processes.0.pid"), "processes[0] has no field 'pid'"),
    "pid": (changed("processes.0.pid", "x"), "processes[0].pid is 'x', which is not of type integer"),
    "boolean": (changed("processes.0.hits", True), "processes[0].hits is True, which is not of type integer"),
    "rank": (changed("processes.0.rank", 1.5), "processes[0].rank is 1.5, which is not of type integer or null"),
    "status": (
        changed("modules.1.status", "odd"),
        "modules[1].status is 'odd', not one of 'mended', 'unchanged', 'passed over', 'not eligible', 'imported too early', 'failed'",
    ),
    "site": (changed("modules.1.sites.1.line"), "modules[1].sites[1] has no field 'line'"),
    "index": (changed("traced.0.processes", [1]), "an entry names a process that 'processes' does not have"),
    "negative index": (changed("traced.0.processes", [-1]), "an entry names a process that 'processes' does not have"),
}


@pytest.mark.parametrize("case", list(BAD))
@pytest.mark.parametrize("action", ["show", "merge"])
def test_bad_file_is_named_with_what_is_wrong(
    action: str, case: str, save: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    content, complaint = BAD[case]
    assert cli.main(["report", action, save("good.json", THREE), save("bad.json", content)]) == 2
    shown, error = capsys.readouterr()
    assert (shown, len(error.splitlines())) == ("", 1)
    assert error.startswith(f"graphmend report: error: bad.json: {complaint}")


def test_file_that_cannot_be_read(save: Any, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"^missing\.json: No such file or directory$"):
        load("missing.json")
    with pytest.raises(ReportError, match=r": Is a directory$"):
        load(str(tmp_path))
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ReportError, match=r"^binary\.json: this is not JSON: 'utf-8' codec"):
        load("binary.json")


def test_field_that_is_not_known_is_no_error(save: Any) -> None:
    """Fields may be added without a new schema number."""
    assert load(save("r.json", {**ONE, "new": 1}))["new"] == 1


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        ("train.py", "there is a file that is not a report; move it, or choose another path"),
        ("missing/job.json", "No such file or directory"),
    ],
)
def test_output_that_cannot_be_written(
    out: str, complaint: str, save: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    assert cli.main(["report", "merge", save("one.json", ONE), "-o", out]) == 2
    assert capsys.readouterr() == ("", f"graphmend report: error: {out}: cannot be written: {complaint}\n")
    assert (tmp_path / "train.py").read_text() == "print(1)\n"


def test_output_replaces_an_earlier_one(save: Any, tmp_path: Path) -> None:
    for part in (ONE, TWO):
        assert cli.main(["report", "merge", save("r.json", part), "-o", "job.json"]) == 0
        assert load("job.json")["processes"] == part["processes"]


JOB = """
import graphmend_hook, app, subprocess, sys
if sys.argv[1:]:
    subprocess.run([sys.executable, __file__], check=True)
"""


def test_reports_of_a_real_job(write: Any, python: Python, tmp_path: Path) -> None:
    write("app.py", 'def f(x):\n    print("value", x)\n    return x\n')
    job = write("job.py", JOB)
    ran = python(str(job), "parent", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="r.json")
    assert (ran.returncode, ran.stderr) == (0, "")
    files = sorted(path.name for path in tmp_path.glob("r*.json"))
    assert len(files) == 2
    united = merge([(file, load(str(tmp_path / file))) for file in files])
    [entry] = united["modules"]
    assert (entry["name"], sorted(entry["processes"]), entry["cached"]) == ("app", [0, 1], False)
    assert sorted((process["hits"], process["misses"]) for process in united["processes"]) == [(0, 1), (1, 0)]
