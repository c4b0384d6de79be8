"""The pytest plugin, on small libraries with suites of their own, in fresh processes."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_hook.settings.config import SETTINGS, Settings

with contextlib.suppress(ImportError):
    import torch  # noqa: F401  pytester forgets what a test imports, and torch cannot be imported twice

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

_ENTRY_POINTS = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
# A checkout on the path has no entry point.
LOADED = () if "graphmend" in _ENTRY_POINTS else ("-p", "graphmend_hook.pytest_plugin")
LIBRARY = "def f(x):\n    print(x)\n    return x + 1\n"
USES_LIBRARY = "import lib\n"
MENDED = """
def mended():
    import graphmend_hook.hook.loader as loader, lib
    return isinstance(lib.__spec__.loader, loader.MendingLoader)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest in a fresh process and a clean environment; gives its `RunResult`.

    Without what hypothesis adds to it, which is half of what pytest imports.
    """
    for name in list(os.environ):
        if name.startswith(("GRAPHMEND_", "PYTHON", "PYTEST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(pytester.path / "cache"))
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    return lambda *args: pytester.runpytest_subprocess(*LOADED, *without, *args, timeout=300)


@pytest.fixture
def suite(pytester):
    """A library, a conftest that imports it, and a test that passes only if it is mended."""
    pytester.makepyfile(lib=LIBRARY)
    pytester.makeconftest(USES_LIBRARY)
    pytester.makepyfile(test_lib=f"{MENDED}\ndef test_it(): assert mended()")
    return pytester


def test_without_being_asked_nothing_is_installed_imported_or_said(suite, run):
    suite.makepyfile(
        test_lib="""
        import sys
        before = {name for name in sys.modules if name.startswith(("graphmend_hook", "torch", "bytecode"))}
        declaration = {f"graphmend_hook.{name}" for name in ("settings", "settings.config", "settings.syntax", "diagnostics")}
        own = {"graphmend_hook", "graphmend_hook.version", "graphmend_hook.pytest_plugin"}
        def test_it(): assert before <= own | declaration
        """
    )
    result = run()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*graphmend:*")
    result.stdout.no_fnmatch_line("*= graphmend =*")


def test_option_mends_what_a_conftest_imports(suite, run):
    result = run("--graphmend=lib")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "graphmend: on for lib; rules defer, trap, sweep, where, value, grad",
            "*= graphmend =*",
            "graphmend_hook *, process *",
            "1 site mended in 1 of 1 module; *",
        ]
    )


@pytest.mark.parametrize("file", ["pytest.ini", "pyproject.toml"])
def test_ini_key_mends_too_and_the_option_wins(file, suite, run):
    section, quote = ("[pytest]", "") if file == "pytest.ini" else ("[tool.pytest.ini_options]", '"')
    (suite.path / file).write_text(f"{section}\ngraphmend_modules = {quote}lib{quote}\n")
    run().assert_outcomes(passed=1)
    run("--graphmend=other").assert_outcomes(failed=1)
    run("--graphmend=").assert_outcomes(failed=1)


def test_variable_counts_and_the_option_wins(suite, run, monkeypatch):
    monkeypatch.setenv("GRAPHMEND_MODULES", "lib")
    result = run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["graphmend: on for lib; *", "*= graphmend =*"])
    result = run("--graphmend=other")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["graphmend: on for other; *"])


def test_deny_and_rules(suite, run):
    run("--graphmend=lib", "--graphmend-deny=lib").assert_outcomes(failed=1)
    result = run("--graphmend=lib", "--graphmend-rules=-defer")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["graphmend: on for lib; rules trap, sweep, where, value, grad"])
    result.stdout.no_fnmatch_line("*site mended in*")


SHOWS_SETTINGS = """
import graphmend_hook.hook.install as install
def test_it():
    for hook in install.active():
        print("SETTINGS", hook.settings.as_env())
"""
# By setting: a text that is no default.  Without a hook there is nothing to see of `disable`.
GIVEN = {
    "modules": "lib,other",
    "deny": "lib.x",
    "rules": "defer,where",
    "guards": "keep",
    "values": "grid_*,n",
    "cache_dir": "/some/where",
    "strict": "1",
    "report": "/tmp/no-such-directory/r.json",
    "log": "ERROR",
    "late": "1",
}


def option(setting):
    word = "--graphmend" if setting.name == "modules" else f"--graphmend-{setting.name.replace('_', '-')}"
    return f"{word}={GIVEN[setting.name]}" if setting.metavar else word


@pytest.mark.parametrize("way", ["options", "ini"])
def test_every_setting_is_an_option_and_a_key_of_the_ini_file(way, suite, run):
    assert [*GIVEN, "disable"] == [setting.name for setting in SETTINGS]
    suite.makepyfile(test_lib=SHOWS_SETTINGS)
    given = [setting for setting in SETTINGS if setting.name in GIVEN]
    options = [option(setting) for setting in given]
    if way == "ini":
        options = []
        suite.makeini("[pytest]\n" + "".join(f"graphmend_{name} = {text}\n" for name, text in GIVEN.items()))
    result = run("-s", *options)
    [shown] = [line.partition("SETTINGS ")[2] for line in result.outlines if "SETTINGS" in line]
    expected = Settings.from_env({setting.variable(): GIVEN[setting.name] for setting in given})
    assert ast.literal_eval(shown) == expected.as_env()
    result.stdout.fnmatch_lines(["graphmend: on for lib, other; rules defer, where; guards keep; values grid_[*], n"])


def test_modules_of_the_variable_and_options_of_the_command_line(suite, run, monkeypatch):
    monkeypatch.setenv("GRAPHMEND_MODULES", "lib")
    run("--graphmend-guards=keep").stdout.fnmatch_lines(["graphmend: on for lib; rules *grad; guards keep"])
    monkeypatch.delenv("GRAPHMEND_MODULES")
    result = run("--graphmend-guards=keep")
    result.stderr.fnmatch_lines(["ERROR: --graphmend-guards: no modules are mended; name them by --graphmend=MODULES"])


def test_disable_option_wins(suite, run):
    for options in (("--graphmend=lib", "--graphmend-disable"), ("--graphmend-disable",)):
        result = run(*options)
        result.assert_outcomes(failed=1)
        result.stdout.no_fnmatch_line("*graphmend: on*")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_strict_run_in_which_nothing_was_mended_fails(workers, suite, run):
    if workers:
        pytest.importorskip("xdist")
    suite.makepyfile(test_lib="import lib\ndef test_it(): pass")
    result = run("--graphmend=lib", "--graphmend-rules=trap", "--graphmend-strict", *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["GM004: nothing was mended in this process: *"])
    assert run("--graphmend=lib", "--graphmend-strict", *workers).ret == pytest.ExitCode.OK


def test_kill_switch_wins(suite, run, monkeypatch):
    monkeypatch.setenv("GRAPHMEND_DISABLE", "1")
    result = run("--graphmend=lib")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["graphmend: GM007: graphmend_hook is disabled *"])
    result.stdout.no_fnmatch_line("*graphmend: on*")


def test_nothing_mended_is_said(suite, run):
    result = run("--graphmend=other")
    result.stdout.fnmatch_lines(["GM004: nothing was mended in this process: no module matched 'other' *"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--graphmend=a b-c",), "--graphmend: 'b-c' is not a module pattern; use a dotted name*"),
        (
            ("--graphmend=a", "--graphmend-rules=deferr"),
            "--graphmend-rules: there is no rule 'deferr'; did you mean 'defer'? use all,*",
        ),
        (("--graphmend=a", "--graphmend-deny=1x"), "--graphmend-deny: '1x' is not a module pattern;*"),
        (("--graphmend=a", "--graphmend-guards=no"), "--graphmend-guards: 'no' is not a way to treat guards; use*"),
        (("--graphmend=a", "-o", "graphmend_log=loud"), "graphmend_log in the ini file: 'loud' is not a level; use*"),
    ],
)
def test_wrong_use_is_refused_with_the_remedy(arguments, message, suite, run):
    result = run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_hook_is_gone_after_the_run(suite, run):
    suite.makepyfile(
        run="""
        import sys, pytest
        pytest.main([*sys.argv[1:], "-p", "no:terminal"])
        import graphmend_hook.hook.install as install
        print("hooks", len(install.active()))
        """
    )
    done = subprocess.run(
        [sys.executable, "run.py", *LOADED, "--graphmend=lib"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hooks 0\n"


def test_workers_of_xdist_mend_and_their_report_is_one(suite, run):
    pytest.importorskip("xdist")
    suite.makepyfile(other=LIBRARY)  # imported by a test: the controller never sees it
    suite.makepyfile(test_other="import other\ndef test_it(): assert 'Mending' in type(other.__loader__).__name__")
    result = run("--graphmend=lib,other", "-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["graphmend: on for lib, other; *", "2 sites mended in 2 of 2 modules; *"])


def test_test_modules_are_not_in_the_summary(suite, run):
    package = suite.mkpydir("package")
    package.joinpath("module.py").write_text(LIBRARY)
    package.joinpath("test_inside.py").write_text("import package.module\ndef test_it(): pass\n")
    result = run("--graphmend=package", "package")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 site mended in 1 of * module*; *"])
    result.stdout.fnmatch_lines(["  not eligible * 0"])
    result.stdout.no_fnmatch_line("*test_inside*loaded by*")


def test_library_that_is_imported_by_an_earlier_plugin_is_reported(suite, run):
    suite.makepyfile(early="import lib")
    result = run("-p", "early", "--graphmend=lib")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["graphmend: GM001: lib was imported before graphmend_hook was installed *", "  imported too early  1"]
    )


MARKED = """
import pytest

@pytest.mark.graphmend
def test_any(): pass

@pytest.mark.graphmend(modules="lib", rules="defer")
def test_lib(): pass

@pytest.mark.graphmend(modules=["lib", "other"])
def test_both(): pass

@pytest.mark.graphmend(modules="missing.module")
def test_missing(): pass
"""
NEEDS = "needs graphmend_hook: run pytest --graphmend="


@pytest.mark.parametrize(
    ("arguments", "passed", "reasons"),
    [
        ((), 0, [f"{NEEDS}MODULES", f"{NEEDS}lib", f"{NEEDS}lib,other", f"{NEEDS}missing.module"]),
        (
            ("--graphmend=lib",),
            2,
            [
                "needs other mended by graphmend_hook: it was not loaded by the hook; run pytest --graphmend=lib,other",
                "needs missing.module mended by graphmend_hook: there is no such module",
            ],
        ),
        (
            ("--graphmend=lib,other", "--graphmend-rules=trap"),
            2,
            [
                "needs lib mended by graphmend_hook: without the rules defer; see --graphmend-rules",
                "needs missing.module mended by graphmend_hook: there is no such module",
            ],
        ),
    ],
)
def test_marker_skips_where_the_hook_is_not_as_needed(arguments, passed, reasons, suite, run):
    suite.makepyfile(other=LIBRARY)
    suite.makepyfile(test_lib=MARKED)
    result = run("-rs", "--strict-markers", *arguments)
    result.assert_outcomes(passed=passed, skipped=4 - passed)
    shown = [line.partition(": ")[2] for line in result.outlines if line.startswith("SKIPPED")]
    assert shown == reasons


def test_marker_without_modules_may_need_rules(suite, run):
    suite.makepyfile(test_lib="import pytest\n@pytest.mark.graphmend(rules=['where'])\ndef test_it(): pass")
    run("--graphmend=lib").assert_outcomes(passed=1)
    result = run("-rs", "--graphmend=lib", "--graphmend-rules=defer")
    result.stdout.fnmatch_lines(["SKIPPED*needs graphmend_hook with the rules where: see --graphmend-rules"])


def test_marker_with_positional_arguments_is_refused(suite, run):
    suite.makepyfile(test_lib="import pytest\n@pytest.mark.graphmend('lib')\ndef test_it(): pass")
    result = run("--graphmend=lib")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the marker graphmend takes modules= and rules= only"])


def test_fixtures_are_the_functions(suite, run):
    suite.makepyfile(
        test_lib="""
        import graphmend_hook.testing as testing
        def test_it(assert_single_graph, assert_same_as_eager):
            assert assert_single_graph is testing.assert_single_graph
            assert assert_same_as_eager is testing.assert_same_as_eager
        """
    )
    run().assert_outcomes(passed=1)


def test_entry_point_is_declared():
    pyproject = Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\ngraphmend = "graphmend_hook.pytest_plugin"\n' in pyproject


def test_mended_library_is_one_graph_under_the_option_alone(suite, run):
    pytest.importorskip("torch")
    suite.makepyfile(
        test_lib="""
        import torch, lib
        def test_one_graph(assert_single_graph):
            assert assert_single_graph(lib.f, torch.ones(2)).tolist() == [2.0, 2.0]
        """
    )
    run("--graphmend=lib").assert_outcomes(passed=1)
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: expected one graph and no graph break, got 1 graph and 1 graph break",
            "E*lib.py:2 in f: print(x)",
            "E*Dynamo: *",
            "E*graphmend: lib is not among the modules that are mended",
        ]
    )
