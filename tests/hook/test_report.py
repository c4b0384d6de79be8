"""What is reported, to whom, and by which process."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hook_cases import MENDABLE, PLAIN

from graphmend_hook.diagnostics import Outcome, Site
from graphmend_hook.engine.attempt import refusals
from graphmend_hook.product.report import ledger as ledgers
from graphmend_hook.product.report import text
from graphmend_hook.product.report.ledger import HookRecord, Ledger, ModuleRecord, Status, as_json
from graphmend_hook.product.report.text import as_text
from graphmend_hook.rules.codes import REFUSALS
from graphmend_hook.settings.config import GUARD_MODES, Settings
from graphmend_hook.version import __version__

Write = Callable[[str, str], Path]
Python = Callable[..., "subprocess.CompletedProcess[str]"]
MENDED = Site("defer", "f", 2)
GUARD = Site("trap", "f", 5)
DECLINED = Site("defer", "C.g", 9, "GM101-R03", "a handler could catch it")
RARE = Site("where", "h", 1, "GM102-R01", "a side has effects")
USE = "import graphmend_hook, app; app.f(7)"
SCHEMA = json.loads(Path(ledgers.__file__).with_name("schema.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _not_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(refusals, "seen", {})


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(started=1_700_000_000.5)
    ledger.hooks.append(HookRecord(SETTINGS, tmp_path / "cache"))
    a, b = f"{tmp_path}/src/a.py", "/venv/lib/python3.11/site-packages/lib/b.py"
    ledger.add(ModuleRecord("a", a, Status.MENDED, (MENDED, GUARD, DECLINED, DECLINED), True, 0.25))
    ledger.add(ModuleRecord("b", b, Status.MENDED, (MENDED, DECLINED, DECLINED, RARE), False, 0.5))
    ledger.add(ModuleRecord("c", "/c.py", Status.UNCHANGED, (DECLINED,), None))
    ledger.add(ModuleRecord("d", "/d.so", Status.NOT_ELIGIBLE, why="loaded by Extension"))
    ledger.add(ModuleRecord("e", "/e.so", Status.NOT_ELIGIBLE, why="loaded by Extension"))
    for number in range(5):
        ledger.add(ModuleRecord(f"early{number}", f"/early{number}.py", Status.TOO_EARLY))
    ledger.add(ModuleRecord("f", "/f.py", Status.FAILED, why="RuntimeError('[x]')"))
    left = [("GM101-T04", a, 2, "f"), ("GM101-T09", a, 5, "f"), ("GM102-T01", "/elsewhere.py", 3, "m")]
    refusals.seen.update(dict.fromkeys(left, ""))
    return ledger


SETTINGS = Settings(modules=("a", "lib.*"), rules=("defer",), guards="async", values=("grid_*", "n"))
TEXT = f"""\
graphmend_hook {__version__}, process {os.getpid()}
1 site mended in 2 of 11 modules; cache: 1 hit, 1 miss; 750 ms
settings: rules defer; guards async; values grid_*, n

modules               11
  mended               2
  unchanged            1
  passed over          0
  not eligible         2
  imported too early   5
  failed               1

sites    mended  declined  left while tracing
  defer       1         5                   1
  trap        0         0                   1
  where       0         1                   1

declined
  GM101-R03, 5 sites: a handler could catch it
    src/a.py:9 in C.g
    src/a.py:9 in C.g
    lib/b.py:9 in C.g
    and 2 more
  GM102-R01, 1 site: a side has effects
    lib/b.py:1 in h

left while tracing
  GM101-T04, 1 site: an argument is an object whose text may change before the effect is delivered, or is too big to copy
    src/a.py:2 in f
  GM101-T09, 1 site: this torch, or this way to compile, generates code that the epilogue cannot reach
    src/a.py:5 in f
  GM102-T01, 1 site: the test is a tensor with more or less than one element, or one with behaviour of its own
    /elsewhere.py:3 in m

not eligible
  2 modules: loaded by Extension
    d (/d.so)
    e (/e.so)

imported too early
  5 modules: import graphmend_hook (or call graphmend_hook.install) before it, start the program with python -m graphmend_hook, or mend it as it is by install(..., late=True) or GRAPHMEND_LATE=1; `graphmend doctor` names who imports it
    early0 (/early0.py)
    early1 (/early1.py)
    early2 (/early2.py)
    and 2 more

failed
  1 module: RuntimeError('[x]')
    f (/f.py)
"""


def test_text(ledger: Ledger) -> None:
    assert as_text(ledger) + "\n" == TEXT
    assert max(map(len, as_text(ledger).splitlines()[:16])) < 80  # and no more of them than need be


def test_html_is_the_text(ledger: Ledger) -> None:
    assert html.unescape(re.sub("<[^>]*>", "", text.as_html(ledger))) == TEXT


def test_text_of_nothing() -> None:
    assert as_text(Ledger()).splitlines()[:4] == [
        f"graphmend_hook {__version__}, process {os.getpid()}",
        "0 sites mended in 0 of 0 modules; cache: 0 hits, 0 misses; 0 ms",
        "",
        "modules               0",
    ]


def test_text_has_no_escapes_whatever_the_environment_says(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")  # nor is anything wrapped
    assert as_text(ledger) + "\n" == TEXT


def test_text_of_a_rank(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    assert as_text(ledger).startswith(f"graphmend_hook {__version__}, process {os.getpid()}, rank 3 of ?\n")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert as_text(ledger).startswith(f"graphmend_hook {__version__}, process {os.getpid()}, rank 3 of 8\n")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [1, 10, 20, 40, 80, 300])
def test_every_width_of_a_terminal(width: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables fit; lines of text are left to the terminal, so that places can be copied."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = Terminal()
    shown.write(text.as_text_for(shown, as_json(ledger)))
    assert "\x1b[" in shown.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    tables = plain[: plain.index("\ndeclined\n")].splitlines()[3:]
    assert max(map(len, tables)) <= width
    assert "    src/a.py:9 in C.g\n" in plain
    if width >= 80:
        assert plain == TEXT


@pytest.mark.parametrize("setting", ["NO_COLOR", "TERM"])
def test_no_colour_where_it_is_not_wanted(setting: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(setting, {"NO_COLOR": "1", "TERM": "dumb"}[setting])
    shown = Terminal()
    shown.write(text.as_text_for(shown, as_json(ledger)))
    assert not re.search(r"\x1b\[(?:\d+;)*[34]\d", shown.getvalue())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v/lib/python3.11/site-packages/lib/b.py", "lib/b.py"),
        ("/usr/lib/python3/dist-packages/b.py", "b.py"),
        (r"C:\v\Lib\site-packages\lib\b.py", r"lib\b.py"),
        ("{here}/src/a.py", "src/a.py"),
        ("{here}/.venv/site-packages/a.py", "a.py"),
        ("{here}x/a.py", "{here}x/a.py"),
        ("<string>", "<string>"),
        ("/odd\udc80.py", r"/odd\udc80.py"),
    ],
)
def test_shortened_paths(path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert text.shorten(path.format(here=tmp_path)) == expected.format(here=tmp_path)


def test_shortened_path_in_a_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert text.shorten("/a.py") == "/a.py"


def test_json(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "--lr", "3e-4"])
    monkeypatch.setattr(time, "time", lambda: 1_700_000_061.0)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__="2.13.0+cpu"))  # type: ignore[arg-type]
    for name, value in {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_PROCID": "7"}.items():
        monkeypatch.setenv(name, value)
    report = json.loads(json.dumps(as_json(ledger)))
    assert list(report) == ["schema", "version", "processes", "modules", "traced"]
    assert (report["schema"], report["version"]) == (2, __version__)
    hook = {
        **{"modules": ["a", "lib.*"], "deny": [], "rules": ["defer"], "guards": "async"},
        **{
            "values": ["grid_*", "n"],
            "cache_dir": None,
            "strict": False,
            "report": "",
            "log": "",
            "late": False,
            "disable": False,
        },
        "cache_directory": f"{tmp_path}/cache",
        "cache_problem": "",
    }
    assert report["processes"] == [
        {
            **{"pid": os.getpid(), "host": os.uname().nodename, "rank": 3, "local_rank": 1, "world_size": 8},
            **{"argv": ["python", "train.py", "--lr", "3e-4"], "version": __version__},
            **{"python": "{}.{}.{}".format(*sys.version_info), "torch": "2.13.0+cpu"},
            **{"started": "2023-11-14T22:13:20Z", "ended": "2023-11-14T22:14:21Z", "not_relied_on": []},
            **{"hooks": [hook]},
            **{"hits": 1, "misses": 1, "seconds": 0.75},
        }
    ]
    statuses = [module["status"] for module in report["modules"]]
    assert statuses == ["mended"] * 2 + ["unchanged"] + ["not eligible"] * 2 + ["imported too early"] * 5 + ["failed"]
    site = {"rule": "defer", "function": "C.g", "line": 9, "outcome": "declined", "code": "GM101-R03"}
    assert report["modules"][2] == {
        **{"name": "c", "path": "/c.py", "status": "unchanged", "cached": None, "seconds": 0.0, "why": ""},
        **{"sites": [{**site, "reason": "a handler could catch it"}], "processes": [0]},
    }
    assert [(item["rule"], item["code"]) for item in report["traced"]] == [
        ("defer", "GM101-T04"),
        ("trap", "GM101-T09"),  # by the rule that mended what stands there
        ("where", "GM102-T01"),  # by its code, because nothing is known of the place
    ]
    assert report["traced"][2] == {
        **{"rule": "where", "code": "GM102-T01", "reason": REFUSALS["GM102-T01"]},
        **{"path": "/elsewhere.py", "line": 3, "function": "m", "processes": [0]},
    }


def test_a_site_that_was_left_while_tracing_is_told_of_once(ledger: Ledger) -> None:
    a = f"{os.getcwd()}/src/a.py"
    refusals.seen.update(
        {("GM104-T09", a, 2, "torch_dynamo_resume_in_f_at_1"): "RuntimeError", ("GM101-T14", a, 9, "g"): ""}
    )
    defer, trap, *_ = as_json(ledger)["modules"][0]["sites"]
    assert (defer["outcome"], defer["code"]) == ("left while tracing", "GM101-T04")
    assert (trap["outcome"], trap["code"]) == ("left while tracing", "GM101-T09")
    assert defer["reason"] == REFUSALS["GM101-T04"]
    shown = as_text(ledger)
    assert shown.count("src/a.py:2 in f\n") == 1
    assert f"    src/a.py:2 in f\n      also GM104-T09: {REFUSALS['GM104-T09']} (RuntimeError)\n" in shown
    assert "GM104-T09, 1 site" not in shown
    assert "  defer       1         5                   1\n" in shown


def test_rank_of_slurm(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLURM_PROCID": "5", "SLURM_LOCALID": "0", "SLURM_NTASKS": "16"}.items():
        monkeypatch.setenv(name, value)
    [process] = as_json(ledger)["processes"]
    assert (process["rank"], process["local_rank"], process["world_size"]) == (5, 0, 16)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5"])
def test_rank_that_is_no_number_is_none(text: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", text)
    assert as_json(ledger)["processes"][0]["rank"] is None


def test_report_is_as_the_schema_says(ledger: Ledger) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator
    validator.check_schema(SCHEMA)
    report = json.loads(json.dumps(as_json(ledger)))
    assert [error.message for error in validator(SCHEMA).iter_errors(report)] == []
    report["modules"][0]["status"] = "other"
    del report["processes"][0]["pid"]
    assert len(list(validator(SCHEMA).iter_errors(report))) == 2


def test_schema_knows_every_field_and_value(ledger: Ledger) -> None:
    report, parts = as_json(ledger), SCHEMA["$defs"]
    assert SCHEMA["required"] == list(SCHEMA["properties"]) == list(report)
    found = {
        **{"process": report["processes"][0], "hook": report["processes"][0]["hooks"][0]},
        **{"module": report["modules"][0], "site": report["modules"][0]["sites"][0], "traced": report["traced"][0]},
    }
    for name, entry in found.items():
        assert list(parts[name]["properties"]) == list(entry), name
        # What was added later is no field of reports that were written before.
        later = {
            "hook": ["values", "cache_dir", "report", "log", "late", "disable", "cache_problem"],
            "process": ["not_relied_on"],
        }.get(name, [])
        assert parts[name]["required"] == [field for field in entry if field not in later], name
    assert parts["module"]["properties"]["status"]["enum"] == [status.value for status in Status]
    assert parts["site"]["properties"]["outcome"]["enum"] == [outcome.value for outcome in Outcome]
    assert tuple(parts["hook"]["properties"]["guards"]["enum"]) == GUARD_MODES
    assert SCHEMA["properties"]["schema"]["const"] == ledgers.SCHEMA


def test_every_field_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    for name, part in {"": SCHEMA, **SCHEMA["$defs"]}.items():
        for field in part.get("properties", ()):
            assert f"| `{field}` |" in page, f"{name}.{field}"


def test_the_last_record_of_a_module_counts(ledger: Ledger) -> None:
    ledger.add(ModuleRecord("a", "/a.py", Status.UNCHANGED))
    assert [record.name for record in ledger.with_status(Status.UNCHANGED)] == ["a", "c"]
    assert [len(module["sites"]) for module in as_json(ledger)["modules"]][:2] == [0, 4]


# At the end of a process


def test_report_to_a_path(write: Write, python: Python, tmp_path: Path) -> None:
    path = write("app.py", MENDABLE)
    for cached in (False, True):
        ran = python("-c", USE, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report.json")
        assert (ran.stdout, ran.stderr) == ("value 7\n", "")
        [module] = json.loads((tmp_path / "report.json").read_text())["modules"]
        assert module.pop("seconds") > 0
        site = {"rule": "defer", "function": "f", "line": 2, "outcome": "mended", "code": "", "reason": ""}
        expected: dict[str, Any] = {"name": "app", "path": str(path), "status": "mended", "cached": cached}
        assert module == {**expected, "why": "", "sites": [site], "processes": [0]}


def test_report_to_a_path_of_each_process(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = USE + "; import os; print(os.getpid())"
    pids = [
        python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="r-{pid}.json").stdout.split()[-1] for _ in "ab"
    ]
    assert sorted(path.name for path in tmp_path.glob("r-*")) == sorted(f"r-{pid}.json" for pid in pids)
    for pid in pids:
        assert json.loads((tmp_path / f"r-{pid}.json").read_text())["processes"][0]["pid"] == int(pid)


def test_relative_path_is_that_of_the_start(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    python("-c", USE + "; import os; os.chdir('/')", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report.json")
    assert (tmp_path / "report.json").is_file()


def test_report_to_stderr(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="1")
    assert ran.stdout == "value 7\n"
    assert "\n1 site mended in 1 of 1 module; cache: 0 hits, 1 miss; " in ran.stderr
    assert "\x1b" not in ran.stderr


def test_rich_is_imported_only_to_show_the_report(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    code = USE + "; import sys; print('rich' in sys.modules)"
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="1")
    assert (ran.stdout, "1 site mended" in ran.stderr) == ("value 7\nFalse\n", True)


NOBODY = {
    "closed": "sys.stderr.close()",
    "none": "sys.stderr = None",
    "descriptor closed": "os.close(2)",
    "full": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
    "broken pipe": "r, w = os.pipe(); os.dup2(w, 2); os.close(r); os.close(w)",
    "object without methods": "sys.stderr = object()",
    "text": "import io; sys.stderr = io.StringIO()",
    "rich is another module": "sys.modules['rich'] = sys",
    "the directory is gone": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
}


@pytest.mark.parametrize("case", list(NOBODY))
@pytest.mark.parametrize("target", ["1", "report.json"])
def test_program_ends_as_ever_whatever_becomes_of_the_report(
    case: str, target: str, write: Write, python: Python
) -> None:
    write("app.py", MENDABLE)
    code = f"{USE}; import os, sys; {NOBODY[case]}; sys.exit(3)"
    plain = python("-c", code, GRAPHMEND_MODULES="app")
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target)
    assert plain.returncode == (120 if case == "object without methods" else 3)
    assert (ran.returncode, ran.stdout) == (plain.returncode, "value 7\n")
    assert "Traceback" not in ran.stderr
    if case == "rich is another module" and target == "1":
        assert ran.stderr.startswith("graphmend_hook: the report cannot be shown: ModuleNotFoundError(")


def test_streams_that_show_only_ascii(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="1", PYTHONIOENCODING="ascii")
    assert "  mended              1" in ran.stderr
    assert ran.stderr.isascii()


@pytest.mark.parametrize("target", ["/proc/1/nowhere/report.json", "app.py/report.json", "."])
def test_unwritable_path_is_told_and_changes_nothing(target: str, write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE + "; raise SystemExit(3)", GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target)
    assert (ran.returncode, ran.stdout) == (3, "value 7\n")
    path = os.path.normpath(tmp_path / target)
    assert ran.stderr.startswith(f"graphmend_hook: GRAPHMEND_REPORT: cannot write {path}: ")
    assert len(ran.stderr.splitlines()) == 1


FORK = """
import graphmend_hook, app, os, sys
child = os.fork()
if child:
    os.waitpid(child, 0)
    os.chdir("/")
else:
    {child}
    sys.exit()
"""


@pytest.mark.parametrize("target", ["report-{pid}.json", "-"])
@pytest.mark.parametrize("child", ["pass", "graphmend_hook.install('app')"])
def test_forked_child_does_not_report(target: str, child: str, write: Write, python: Python, tmp_path: Path) -> None:
    """It ends by `sys.exit`, so that it runs the exit functions that it inherited."""
    write("app.py", MENDABLE)
    code = FORK.format(child=child)
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT=target, GRAPHMEND_STRICT="1")
    reports = len(list(tmp_path.glob("report-*"))) if target != "-" else ran.stderr.count(" mended in 1 of 1 module;")
    assert (ran.returncode, reports) == (0, 1), ran.stderr


def test_forked_child_with_a_hook_of_its_own_reports(write: Write, python: Python, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    code = FORK.format(child="graphmend_hook.install('other')")
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_REPORT="report-{pid}.json")
    assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.glob("report-*"))) == 2


def test_many_hooks_write_one_report(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    code = "import graphmend_hook as g; g.install('app'); g.install('lib'); g.uninstall(); g.install('app'); import app"
    ran = python("-c", code, GRAPHMEND_REPORT="-")
    assert ran.stderr.count(" mended in 1 of 1 module;") == 1, ran.stderr


@pytest.mark.parametrize(("source", "says"), [(MENDABLE, False), (PLAIN, True)], ids=["mended", "nothing mended"])
def test_strict_says_that_nothing_was_mended(source: str, says: bool, write: Write, python: Python) -> None:
    write("app.py", source)
    ran = python("-c", USE, GRAPHMEND_MODULES="app,lib", GRAPHMEND_STRICT="1")
    assert ran.stderr.startswith("GM004: nothing was mended in this process: no module matched 'app,lib'") is says
    assert bool(ran.stderr) is says


def test_report_function(write: Write, python: Python) -> None:
    write("app.py", MENDABLE)
    ran = python("-c", USE + "; print(graphmend_hook.report())", GRAPHMEND_MODULES="app")
    assert "1 site mended in 1 of 1 module;" in ran.stdout, ran.stderr
