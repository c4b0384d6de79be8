"""``graphmend doctor``: each check, found and not found, with its exact words and its remedy."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphmend_hook import cli
from graphmend_hook.product.doctor import Finding, Level, environment, program
from graphmend_hook.settings.config import Settings

BOOTSTRAP = str(environment.BOOTSTRAP)
SITE = 'def f(x):\n    print("value", x)\n    return x\n'
Facts = tuple[str, str, str, str]


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without what steers python or the hook, with a cache of its own, in `tmp_path`."""
    for name in [name for name in os.environ if name.startswith(("GRAPHMEND_", "PYTHON", "_GRAPHMEND"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "cache"))
    return dict(os.environ)


def facts(findings: Iterable[Finding]) -> list[Facts]:
    return [(found.check, found.level.value, found.text, found.remedy) for found in findings]


# Versions


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Facts]:
    def check(**found: str | None) -> Facts:
        installed = {"torch": "2.13.0", "transformers": "4.52.4", "bytecode": "0.19.1", **found}
        monkeypatch.setattr(environment, "_version", installed.get)
        monkeypatch.setattr(environment.platform, "platform", lambda: "Linux-6")
        [finding] = facts([environment.check_versions()])
        return finding

    return check


UNTESTED = "tested with torch 2.12 to 2.15; with another, what does not work is found at the first trace (GM011)"


def test_versions(versions: Any) -> None:
    python = "{}.{}.{}".format(*sys.version_info)
    text = f"python {python} ({sys.executable}), Linux-6; graphmend_hook {environment.__version__}, torch 2.13.0, "
    assert versions() == ("versions", "ok", f"{text}transformers 4.52.4, bytecode 0.19.1", "")
    assert versions(torch="2.12.0a0+git")[1:4:2] == ("ok", "")
    assert "transformers is not installed" in versions(transformers=None)[2]


@pytest.mark.parametrize(
    ("found", "level", "remedy"),
    [
        ({"torch": None}, "warning", 'nothing can be compiled without torch; pip install "graphmend_hook[demo]"'),
        ({"torch": "2.6.0+cu124"}, "problem", "graphmend_hook needs torch 2.7 or newer"),
        ({"torch": "1.13.1"}, "problem", "graphmend_hook needs torch 2.7 or newer"),
        ({"torch": "2.9.1"}, "warning", UNTESTED),
        ({"torch": "2.16.0"}, "warning", UNTESTED),
        ({"bytecode": None}, "problem", "graphmend_hook needs bytecode: python -m pip install bytecode"),
    ],
)
def test_versions_that_do_not_fit(found: dict[str, str | None], level: str, remedy: str, versions: Any) -> None:
    assert versions(**found)[1:4:2] == (level, remedy)


def test_versions_import_nothing_heavy(python: Any) -> None:
    code = "from graphmend_hook.product.doctor.environment import check_versions; check_versions(); import sys; print(*sys.modules)"
    assert set(python("-c", code).stdout.split()).isdisjoint({"torch", "transformers", "bytecode"})


# Settings

HOW = "set it (GRAPHMEND_MODULES=transformers), call graphmend_hook.install, or run python -m graphmend_hook"
UNSET = "GRAPHMEND_MODULES is not set, so that `import graphmend_hook` alone mends nothing"
KNOWN = ", ".join(f"GRAPHMEND_{name}" for name in sorted(name.upper() for name in Settings.__dataclass_fields__))
SETTINGS = {
    "none": ({}, [("warning", f"{UNSET}; no GRAPHMEND_* variable is set", HOW)]),
    "set": (
        {"GRAPHMEND_REPORT": "1", "GRAPHMEND_MODULES": "app", "GRAPHMEND_DENY": "", "OTHER": "1"},
        [("ok", "GRAPHMEND_MODULES=app, GRAPHMEND_REPORT=1", "")],
    ),
    "disabled": (
        {"GRAPHMEND_MODULES": "app", "GRAPHMEND_DISABLE": "1"},
        [
            (
                "problem",
                "the hook is switched off; GRAPHMEND_DISABLE=1, GRAPHMEND_MODULES=app",
                "unset GRAPHMEND_DISABLE",
            )
        ],
    ),
    "no rule": (
        {"GRAPHMEND_MODULES": "app", "GRAPHMEND_RULES": "none"},
        [
            (
                "problem",
                "no rule may mend anything; GRAPHMEND_MODULES=app, GRAPHMEND_RULES=none",
                "unset GRAPHMEND_RULES",
            )
        ],
    ),
    "misspelt": (
        {"GRAPHMEND_MODULE": "app"},
        [
            (
                "problem",
                "GRAPHMEND_MODULE is not a setting, and keeps the hook from starting",
                "did you mean GRAPHMEND_MODULES?",
            ),
            ("warning", f"{UNSET}; GRAPHMEND_MODULE=app", HOW),
        ],
    ),
    "unlike any": (
        {"GRAPHMEND_ZZZ": "1", "GRAPHMEND_MODULES": "app"},
        [
            (
                "problem",
                "GRAPHMEND_ZZZ is not a setting, and keeps the hook from starting",
                f"unset it; the settings are {KNOWN}",
            ),
            ("ok", "GRAPHMEND_MODULES=app, GRAPHMEND_ZZZ=1", ""),
        ],
    ),
    "malformed": (
        {"GRAPHMEND_STRICT": "perhaps"},
        [("problem", "GRAPHMEND_STRICT: 'perhaps' is neither on nor off; use 1 or 0", "correct it, or unset it")],
    ),
}


@pytest.mark.parametrize("case", list(SETTINGS))
def test_settings(case: str) -> None:
    given, expected = SETTINGS[case]
    findings, settings = environment.check_settings(given)
    assert facts(findings) == [("settings", *found) for found in expected]
    assert (settings is None) == (case in ("misspelt", "unlike any", "malformed"))


# The start of python


def custom(folder: Path, name: str = "sitecustomize") -> str:
    folder.mkdir()
    (folder / f"{name}.py").write_text("")
    return str(folder)


def startup(env: dict[str, str], *path: str) -> Facts:
    [finding] = facts([environment.check_startup({**env, "PYTHONPATH": os.pathsep.join(path)})])
    return finding


OFF = "; without ours, the hook is on where a program imports it or is run by python -m graphmend_hook"


def test_no_sitecustomize_of_ours(env: dict[str, str], tmp_path: Path) -> None:
    theirs = custom(tmp_path / "theirs")
    check, level, text, remedy = startup(env, theirs)
    assert (check, level, remedy) == ("start-up", "ok", "")
    assert text.startswith(f"sitecustomize: {theirs}/sitecustomize.py")
    assert text.endswith(OFF)


def test_sitecustomize_of_ours_is_first(env: dict[str, str], tmp_path: Path) -> None:
    theirs = custom(tmp_path / "theirs")
    _, level, text, remedy = startup(env, BOOTSTRAP, theirs)
    assert (level, remedy) == ("ok", "")
    expected = f"sitecustomize: {BOOTSTRAP}/sitecustomize.py (ours), then {theirs}/sitecustomize.py"
    assert text.startswith(expected)
    assert OFF not in text


def test_sitecustomize_of_ours_is_hidden(env: dict[str, str], tmp_path: Path) -> None:
    theirs = custom(tmp_path / "theirs")
    _, level, text, remedy = startup(env, theirs, BOOTSTRAP)
    assert level == "warning"
    assert text.startswith(
        "python runs another sitecustomize than ours; "
        f"sitecustomize: {theirs}/sitecustomize.py, then {BOOTSTRAP}/sitecustomize.py (ours)"
    )
    assert remedy == f"put it first: PYTHONPATH={BOOTSTRAP}:$PYTHONPATH"


def test_usercustomize(env: dict[str, str], tmp_path: Path) -> None:
    theirs = custom(tmp_path / "theirs", "usercustomize")
    assert f"; usercustomize: {theirs}/usercustomize.py" in startup(env, theirs)[2]


def test_looking_for_a_sitecustomize_does_not_run_it(env: dict[str, str], tmp_path: Path) -> None:
    theirs = custom(tmp_path / "theirs")
    (tmp_path / "theirs" / "sitecustomize.py").write_text("open('ran', 'w')")
    startup(env, theirs)
    assert not (tmp_path / "ran").exists()


# The program


@pytest.fixture
def examine(env: dict[str, str], write: Any) -> Callable[..., dict[str, list[Facts]]]:
    """The findings on a program, by check."""

    def run(*arguments: str, modules: str = "app", **more: str) -> dict[str, list[Facts]]:
        status, seen = program.watch(arguments, {**env, "GRAPHMEND_MODULES": modules, **more})
        found: dict[str, list[Facts]] = {}
        for fact in facts(program.check_program(arguments, status, seen)):
            found.setdefault(fact[0], []).append(fact[1:])
        return found

    write("app.py", SITE)
    return run


def test_program_with_the_hook(examine: Any, write: Any) -> None:
    write("main.py", "import graphmend_hook, app, sys; sys.exit(len(sys.argv) - 2)")
    found = examine("main.py", "argument")
    assert list(found) == ["hook", "finders", "mended"]
    assert found["hook"] == [("ok", "on", "")]
    assert found["finders"][0][1].startswith("MendingFinder, ")
    assert "Watcher" not in found["finders"][0][1]
    assert found["mended"] == [("ok", "1 site in 1 of 1 module", "")]


def test_program_that_has_the_hook_from_its_start(examine: Any) -> None:
    found = examine("-c", "import app", PYTHONPATH=BOOTSTRAP)
    assert found["hook"] == [("ok", "on from the start of every python here, by sitecustomize", "")]
    assert found["mended"][0][:2] == ("ok", "1 site in 1 of 1 module")


@pytest.mark.parametrize(
    "arguments", [("-c", "import app"), ("-m", "app"), ("app.py",)], ids=["code", "module", "script"]
)
def test_program_that_never_installs_the_hook(arguments: tuple[str, ...], examine: Any) -> None:
    assert examine(*arguments)["hook"] == [("problem", "the program never installed the hook", program._HOW)]


def test_no_program(examine: Any) -> None:
    assert examine()["hook"] == [("ok", "on from where a program imports graphmend_hook", "")]
    text = "a program that only imports graphmend_hook has no hook"
    assert examine(modules="")["hook"][0][:2] == ("problem", text)


def test_program_run_by_ours(examine: Any, write: Any) -> None:
    write("main.py", "import app")
    found = examine("-m", "graphmend_hook", "main.py")
    assert found["hook"] == [("ok", "on", "")]
    assert found["mended"] == [("ok", "1 site in 1 of 2 modules", "")]


def test_modules_imported_too_early_and_by_whom(examine: Any, write: Any) -> None:
    write("pkg/__init__.py", "import importlib\nimportlib.import_module('pkg.inner')\n")
    write("pkg/inner.py", SITE)
    write("helper.py", "def load():\n    import app\n")
    write("main.py", "import helper\nimport pkg\nhelper.load()\nimport graphmend_hook\n")
    found = examine("main.py", modules="app,pkg")
    assert found["imported too early"] == [
        (
            "problem",
            "3 modules imported before the hook was installed: pkg, pkg.inner by main.py:2 in <module>; "
            "app by helper.py:2 in load",
            "install the hook before main.py:2 in <module>, or run the program by python -m graphmend_hook",
        )
    ]


def test_the_program_itself_is_there_before_the_hook(examine: Any, write: Any) -> None:
    write("main.py", "import graphmend_hook, app\n")
    text = "the program itself, which python -m loads without asking a hook"
    expected = [("warning", text, "run it by python -m graphmend_hook")]
    assert examine("-m", "main", modules="./")["imported too early"] == expected


def test_modules_imported_before_the_probe() -> None:
    early = [{"name": name, "status": "imported too early"} for name in ("pkg.inner", "pkg")]
    report = {"modules": early, "processes": [{"hooks": [], "hits": 0, "misses": 0}]}
    [found] = program._too_early(report, {"importers": {}})
    text = "2 modules imported before the hook was installed: pkg.inner, pkg by python itself or a .pth file"
    remedy = "install the hook before that, or run the program by python -m graphmend_hook"
    assert (found.text, found.remedy) == (text, remedy)


def test_modules_that_are_not_eligible(examine: Any, write: Any, tmp_path: Path) -> None:
    write("sourceless.py", SITE)
    write("names/inner.py", SITE)
    compile_it = "import py_compile; py_compile.compile('sourceless.py', cfile='sourceless.pyc')"
    subprocess.run([sys.executable, "-c", compile_it], check=True)
    (tmp_path / "sourceless.py").unlink()
    hook = """
import graphmend_hook, sys
from importlib.machinery import PathFinder, SourceFileLoader
class Theirs(SourceFileLoader):
    def exec_module(self, module): exec(self.get_data(self.path), vars(module))
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path) if name == 'app' else None
        if spec: spec.loader = Theirs(name, spec.origin)
        return spec
sys.meta_path.append(Finder)
sys.meta_path.insert(1, Finder)
import app, sourceless, names.inner
"""
    write("main.py", hook)
    found = examine("main.py", modules="app,sourceless,names")["not eligible"]
    why = "loaded by __main__.Theirs, not from a plain source file"
    assert found == [
        (
            "warning",
            f"app: {why}",
            "another import hook loads it; leave the module out of that one, or mend it by graphmend_hook.mend(module)",
        ),
        (
            "warning",
            "sourceless: loaded by _frozen_importlib_external.SourcelessFileLoader, not from a plain source file",
            "install the library with its sources",
        ),
        ("ok", "names: a namespace package has no code of its own", ""),
    ]


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (
            "loaded by _frozen_importlib_external.ExtensionFileLoader, not",
            "compiled code cannot be mended; GRAPHMEND_DENY takes the module off the list",
        ),
        ("loaded by zipimport.zipimporter, not", "unpack the archive"),
    ],
)
def test_remedies(why: str, remedy: str) -> None:
    assert program._remedy(why) == remedy


def test_finder_before_ours(examine: Any, write: Any) -> None:
    write("main.py", "import graphmend_hook, sys\nclass Theirs: find_spec = None\nsys.meta_path.insert(0, Theirs())\n")
    [(level, text, remedy)] = examine("main.py")["finders"]
    assert level == "warning"
    assert text.startswith("others are asked before ours: Theirs, MendingFinder, ")
    assert remedy == "install the hook after Theirs; what they find first is not mended"


def test_nothing_was_mended(examine: Any, write: Any) -> None:
    write("plain.py", "x = 1\n")
    write("main.py", "import graphmend_hook, plain, app")
    assert examine("main.py", modules="plain")["mended"] == [
        (
            "warning",
            "nothing: 1 module matched 'plain', without a site that could be mended",
            "run with --report to see what was declined",
        )
    ]
    [(level, text, remedy)] = examine("main.py", modules="other,x.*")["mended"]
    assert (level, remedy) == ("problem", "name those that run inside torch.compile in GRAPHMEND_MODULES")
    assert text.startswith("nothing: no module matched 'other,x.*'; imported were app, ")
    assert "plain" in text


def test_nothing_was_mended_because_all_came_too_early(examine: Any, write: Any) -> None:
    write("main.py", "import app, graphmend_hook")
    expected = ("problem", "nothing: none of 1 module could be mended", "see the reasons above")
    assert examine("main.py")["mended"] == [expected]


def test_module_that_failed() -> None:
    seen = {"at_start": [], "finders": ["MendingFinder"], "importers": {}, "modules": {}}
    failed = {"name": "app", "status": "failed", "why": "RuntimeError('x')", "sites": []}
    seen["report"] = {"modules": [failed], "processes": [{"hooks": [], "hits": 0, "misses": 0}]}
    [_hook, _finders, found, _mended] = facts(program.check_program(["x.py"], 0, seen))
    assert found == (
        *("failed", "problem", "an error of ours kept them from being mended: app: RuntimeError('x')"),
        "please report this; GRAPHMEND_DENY=app silences it",
    )


def test_program_that_fails(examine: Any) -> None:
    found = examine("-c", "import graphmend_hook, app, sys; sys.exit(3)")
    assert found["program"] == [("warning", "the program ended with status 3", "what follows is true up to there")]
    assert found["mended"][0][0] == "ok"


def test_program_that_ends_without_its_exit_functions(examine: Any) -> None:
    assert examine("-c", "import os; os._exit(0)") == {
        "program": [
            (
                "problem",
                "nothing is known of the program: it ended without its exit functions, or python did not start",
                "let it end by itself, not by os._exit or a signal",
            )
        ]
    }


@pytest.mark.parametrize("path", [None, "", "theirs", "theirs:"])
def test_program_sees_its_environment_as_it_was(
    path: str | None, env: dict[str, str], write: Any, tmp_path: Path
) -> None:
    """So do its children; and a sitecustomize of the user's runs."""
    custom(tmp_path / "theirs")
    (tmp_path / "theirs" / "sitecustomize.py").write_text("import sys; sys.theirs = True")
    look = "import json, os, sys; facts = [sys.path, dict(os.environ), hasattr(sys, 'theirs'), len(sys.meta_path)]\n"
    write("look.py", look + "json.dump(facts, open(sys.argv[1], 'w'))")
    env = {**env, **({} if path is None else {"PYTHONPATH": path})}
    subprocess.run([sys.executable, "look.py", "plain"], env=env, check=True)
    start = "import subprocess, sys; subprocess.run([sys.executable, 'look.py', 'child'], check=True)"
    write("start.py", start)
    assert program.watch(["look.py", "seen"], env)[0] == 0
    assert program.watch(["start.py"], env)[0] == 0
    plain, seen, child = (json.loads((tmp_path / name).read_text()) for name in ("plain", "seen", "child"))
    assert child == plain
    assert seen == [*plain[:3], plain[3] + 1]


# The cache


def test_cache(env: dict[str, str], tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path / "cache")
    [found] = facts([environment.check_cache(settings, None)])
    rights = f"{(tmp_path / 'cache').stat().st_mode & 0o777:o}"
    assert found == (
        "cache",
        "ok",
        f"{tmp_path}/cache: 0 entries, 0.0 MB, 0 of them for these settings; rights {rights}",
        "",
    )
    old = tmp_path / "cache" / ("0" * 16)
    old.mkdir()
    (old / f"a.{'0' * 32}.gmc").write_bytes(bytes(1_500_000))
    seen = {"report": {"processes": [{"hits": 1, "misses": 2}]}}
    finding = environment.check_cache(settings, seen)
    assert finding.text == (
        f"{tmp_path}/cache: 1 entry, 1.5 MB, 0 of them for these settings; rights {rights}; "
        "1 hit and 2 misses in this program"
    )
    expected = {"directory": f"{tmp_path}/cache", "entries": 1, "bytes": 1_500_000, "current": 0}
    assert finding.details == {**expected, "rights": rights, "hits": 1, "misses": 2}


def test_cache_that_others_can_write_to(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    [found] = facts([environment.check_cache(Settings(cache_dir=tmp_path / "cache"), None)])
    why = f"GM003: the cache directory {tmp_path}/cache is not used: others may write to it; "
    assert found[1:] == (
        "problem",
        f"{why}set GRAPHMEND_CACHE_DIR to a directory that only you can write to",
        "every process rewrites every module anew until then",
    )


def test_cache_that_nothing_is_written_to(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(cache_dir=tmp_path / "cache")
    environment.check_cache(settings, None)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    [(_, level, text, remedy)] = facts([environment.check_cache(settings, None)])
    assert level == "warning"
    assert text.startswith(f"nothing is written to it; {tmp_path}/cache: 0 entries")
    assert remedy == "unset PYTHONDONTWRITEBYTECODE where programs run, or fill the cache without it"


def test_cache_that_does_not_exist_and_is_not_made(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    remedy = "unset PYTHONDONTWRITEBYTECODE where programs run, or fill the cache without it"
    expected = ("cache", "warning", "there is none, and python was told to write none", remedy)
    assert facts([environment.check_cache(Settings(cache_dir=tmp_path / "cache"), None)]) == [expected]
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    assert environment.check_cache(Settings(cache_dir=tmp_path / "cache"), None).level is Level.PROBLEM


# The self-test


def test_self_test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "find_spec", lambda name: None)
    text = "torch is not installed here, so nothing can be compiled"
    assert facts([*environment.check_self({})]) == [("self-test", "skipped", text, "")]


@pytest.mark.slow
def test_self_test(env: dict[str, str]) -> None:
    pytest.importorskip("torch")
    text = "a log line, a guard and a branch: one graph; results, records and exception as in eager"
    probes = ("probes", "ok", "all 8 work on this torch", "")
    assert facts([*environment.check_self(env)]) == [probes, ("self-test", "ok", text, "")]


@pytest.mark.slow
def test_probes_that_fail(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    for name in ("selftest_module.py", "selftest_program.py"):
        text = (environment._HERE / name).read_text()
        run = "\nfound = failures()\n"
        (tmp_path / name).write_text(text.replace(run, f"{run}trust.failed = {{trust.Mechanism.DELIVERY}}\n"))
    monkeypatch.setattr(environment, "_HERE", tmp_path)
    probes = facts([*environment.check_self(env)])[0]
    assert probes[:2] == ("probes", "problem")
    assert probes[2].startswith("1 probe of 8 failed on this torch: what waits for the end of the graph")


BROKEN = {
    "a declined site": ("    logger.warning(", "    logger.warning(*(),", "line 13 was not mended (GM101-R02)"),
    "a side that needs data": ("        y = x + 1", "        y = x + len(set(x.tolist()))", " graphs instead of one"),
    "no site": ('    logger.warning("%d numbers", x.numel())\n', "", "2 sites were found instead of 3 (mended) "),
}


@pytest.mark.parametrize("case", list(BROKEN))
@pytest.mark.slow
def test_self_test_that_fails(case: str, env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    old, new, complaint = BROKEN[case]
    for name in ("selftest_module.py", "selftest_program.py"):
        text = (environment._HERE / name).read_text()
        (tmp_path / name).write_text(text.replace(old, new))
    monkeypatch.setattr(environment, "_HERE", tmp_path)
    [probes, (_, level, text, remedy)] = facts([*environment.check_self(env)])
    assert probes == ("probes", "ok", "all 8 work on this torch", "")
    assert level == "problem"
    assert complaint in text
    assert remedy == "please report this, with the output of `graphmend doctor --json`"


def test_self_test_that_does_not_run(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "selftest_module.py").write_text("")
    (tmp_path / "selftest_program.py").write_text("raise RuntimeError('x')")
    monkeypatch.setattr(environment, "_HERE", tmp_path)
    monkeypatch.setattr(environment, "find_spec", lambda name: True)
    [(_, level, text, _remedy)] = facts([*environment.check_self(env)])
    assert (level, text) == ("problem", "it ended with status 1: RuntimeError: x")


def test_self_test_that_does_not_end(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_args: Any, **_options: Any) -> Any:
        raise subprocess.TimeoutExpired("python", 1)

    monkeypatch.setattr(environment.subprocess, "run", wait)
    monkeypatch.setattr(environment, "find_spec", lambda name: True)
    [(_, level, text, _remedy)] = facts([*environment.check_self(env)])
    assert (level, text) == ("problem", f"it took more than {environment._LIMIT} s")


def test_python_that_does_not_start(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('broken')")
    [(_, level, text, remedy)] = facts([environment.check_startup({**env, "PYTHONPATH": str(tmp_path)})])
    assert level == "problem"
    assert text == "python does not start here: ['broken']"
    assert remedy == "see what `python -S -c 'import site; site.main()'` says"


# The command

FINDINGS = [
    Finding("versions", Level.OK, "python [3]"),
    Finding("self-test", Level.SKIPPED, "no torch"),
    Finding("cache", Level.WARNING, "nothing is written to it", "unset it"),
]
BAD = Finding("hook", Level.PROBLEM, "it is off", "switch it on", {"a": 1})


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Run the command with findings that are given."""
    from graphmend_hook.product.commands import doctor

    monkeypatch.setenv("TERM", "dumb")

    def run(findings: list[Finding], *arguments: str) -> SimpleNamespace:
        calls: list[Any] = []
        monkeypatch.setattr(doctor, "_findings", lambda env, words: calls.append((env, words)) or iter(findings))
        status = cli.main(["doctor", *arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err, calls=calls)

    return run


def test_lines(doctor: Any) -> None:
    assert doctor([*FINDINGS, BAD]).out == (
        "ok      versions: python [3]\n"
        "skipped self-test: no torch\n"
        "warning cache: nothing is written to it\n"
        "        -> unset it\n"
        "problem hook: it is off\n"
        "        -> switch it on\n"
    )


def test_exit_status(doctor: Any) -> None:
    assert doctor(FINDINGS).status == 0
    assert doctor([BAD, *FINDINGS]).status == 1


def test_json(doctor: Any) -> None:
    ran = doctor([FINDINGS[0], BAD], "--json")
    assert ran.status == 1
    assert json.loads(ran.out) == {
        "schema": 1,
        "version": environment.__version__,
        "findings": [
            {"check": "versions", "level": "ok", "text": "python [3]", "remedy": "", "details": {}},
            {"check": "hook", "level": "problem", "text": "it is off", "remedy": "switch it on", "details": {"a": 1}},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), []),
        (("--", "-m", "pkg", "--json"), ["-m", "pkg", "--json"]),
        (("--", "-c", "pass"), ["-c", "pass"]),
        (("train.py", "--modules", "x", "--", "y"), ["train.py", "--modules", "x", "--", "y"]),
        (("--", "train.py"), ["train.py"]),
    ],
)
def test_program_on_the_command_line(arguments: tuple[str, ...], words: list[str], doctor: Any) -> None:
    ran = doctor(FINDINGS, "--modules", "app", *arguments)
    [(env, found)] = ran.calls
    assert (found, env["GRAPHMEND_MODULES"], ran.status) == (words, "app", 0)


def test_wrong_option(doctor: Any) -> None:
    ran = doctor(FINDINGS, "--", "-u", "train.py")
    assert (ran.status, ran.calls) == (2, [])
    assert ran.err == "graphmend doctor: error: unknown option -u; name a script, -m MODULE or -c CODE\n"


@pytest.mark.slow
def test_whole_command(python: Any, write: Any) -> None:
    """As a process: the program's output is on stderr, and JSON alone on stdout."""
    write("app.py", SITE)
    write("main.py", "import graphmend_hook, app; app.f(7)")
    run = "import sys; from graphmend_hook.cli import main; sys.exit(main())"
    ran = python("-c", run, "doctor", "--modules", "app", "--json", "main.py")
    findings = json.loads(ran.stdout)["findings"]
    checks = [finding["check"] for finding in findings]
    probes = ["probes"] if importlib.util.find_spec("torch") else []
    assert checks == ["versions", "settings", "start-up", "hook", "finders", "mended", "cache", *probes, "self-test"]
    assert {finding["level"] for finding in findings} <= {"ok", "warning", "skipped"}, findings
    assert (ran.returncode, ran.stderr) == (0, "value 7\n")
    assert findings[6]["text"].endswith("; 0 hits and 1 miss in this program")
