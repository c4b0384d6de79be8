"""What is mended when a program is run: the program itself and its own modules, unless options say otherwise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SITE = "def site(x):\n    print('site', __name__, x)\n    return x\n"


@pytest.fixture
def project(write, tmp_path: Path) -> Path:
    """A script with one site, two first-party modules with one each, and a library in a venv inside the project."""
    write(
        "proj/train.py",
        SITE + "import sys, helper, inner.part\nif 'nodeps' not in sys.argv:\n    import installed\nsite(1)\n",
    )
    write("proj/helper.py", SITE)
    write("proj/inner/__init__.py", "")
    write("proj/inner/part.py", SITE)
    write("proj/inner/__main__.py", "from . import part\n" + SITE + "site(2)\n")
    write("proj/venv/lib/python3/site-packages/installed.py", SITE)
    write("proj/venv/lib/python3/dist-packages/packaged.py", SITE)
    write("proj/quiet.py", "x = 1\n")
    write("proj/app/__main__.py", SITE + "import part_of_app\n")
    write("proj/app/part_of_app.py", SITE)
    return tmp_path / "proj"


@pytest.fixture
def mended(hooked, project):
    """Run a program in the project, and give the names of the modules that the report calls mended."""

    def run(*arguments: str, **env: str) -> set[str]:
        libraries = [project / "venv/lib/python3" / name for name in ("site-packages", "dist-packages")]
        env.setdefault("PYTHONPATH", ":".join(map(str, libraries)))
        done = hooked("--report=report.json", *arguments, cwd=project, **env)
        assert done.returncode == 0, done.stderr
        report = json.loads((project / "report.json").read_text())
        return {module["name"] for module in report["modules"] if module["status"] == "mended"}

    return run


OWN = {"__main__", "helper", "inner.part"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train.py"], OWN),
        (["./train.py", "nodeps"], OWN),
        (["-m", "train"], OWN),
        (["-m", "inner"], {"__main__", "inner.part"}),
        (["-m", "inner.part"], {"__main__"}),
        (["app"], {"__main__", "part_of_app"}),
        (["-c", SITE + "import helper; site(1)"], {"__main__", "helper"}),
        (["--modules", "installed", "train.py"], {"__main__", "installed"}),
        (["--modules", "installed,inner", "train.py"], {"__main__", "installed", "inner.part"}),
        (["--modules", "nothing", "train.py"], {"__main__"}),
        (["--modules", "", "train.py"], {"__main__"}),
        (["--modules", ".", "train.py"], OWN),
        (["--modules", "./inner", "train.py"], {"__main__", "inner.part"}),
        (["--deny", "__main__", "train.py"], {"helper", "inner.part"}),
        (["--deny", "__main__", "-m", "inner"], {"inner.part"}),
        (["--deny", "inner.__main__", "-m", "inner"], {"inner.part"}),
        (["--deny", "inner", "-m", "inner"], set()),
        (["--deny", "helper", "train.py"], {"__main__", "inner.part"}),
        (["--deny", "./inner", "train.py"], {"__main__", "helper"}),
        (["--deny", ".", "train.py"], set()),
        (["--rules", "none", "train.py"], set()),
        (["--rules", "-defer", "train.py"], set()),
        (["quiet.py"], set()),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_modules_that_are_mended(arguments, expected, mended):
    assert mended(*arguments) == expected


def test_program_on_stdin_is_mended(python, project):
    driver = (
        "import os, sys; os.dup2(os.open('train.py', 0), 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    run = python("-c", driver, "-m", "graphmend_hook", "--report", "-", "nodeps", cwd=project)
    assert " mended in 3 of " in run.stderr


def test_first_party_in_another_directory_than_the_current_one(hooked, project, tmp_path):
    run = hooked("--report", "proj/train.py", "nodeps", cwd=tmp_path)
    assert " mended in 3 of " in run.stderr
    assert "3 sites mended in" in run.stderr


def test_first_party_by_way_of_a_symlink(hooked, project, tmp_path):
    (tmp_path / "link.py").symlink_to(project / "train.py")
    (tmp_path / "linked").symlink_to(project)
    assert " mended in 3 of " in hooked("--report", "link.py", "nodeps").stderr
    assert " mended in 3 of " in hooked("--report", "linked/train.py", "nodeps").stderr


def test_environment_chooses_the_modules_unless_an_option_does(mended):
    assert mended("train.py", GRAPHMEND_MODULES="installed") == {"__main__", "installed"}
    assert mended("--modules=helper", "train.py", GRAPHMEND_MODULES="installed") == {"__main__", "helper"}
    assert mended("--modules=helper", "train.py", GRAPHMEND_DENY="__main__") == {"helper"}
    assert mended("--rules=all", "train.py", GRAPHMEND_RULES="none") == OWN


def test_option_denies_what_the_environment_allows(mended):
    """The variable installs a hook as soon as the package is imported; that one knows no options."""
    assert mended("--deny=installed", "train.py", GRAPHMEND_MODULES="installed,helper") == {"__main__", "helper"}


@pytest.mark.parametrize("how", ["option", "variable"])
@pytest.mark.parametrize("modules", [{}, {"GRAPHMEND_MODULES": "helper"}])
def test_disable_wins(how, modules, hooked, project):
    options = ["--disable"] if how == "option" else []
    env = {"GRAPHMEND_DISABLE": "1"} if how == "variable" else {}
    probe = "import sys, helper; print([type(f).__name__ for f in sys.meta_path], helper.__loader__.__class__.__name__)"
    run = hooked("--report", "--strict", *options, "-c", SITE + probe, cwd=project, **env, **modules)
    assert run.returncode == 0
    assert "Mending" not in run.stdout
    assert "_@graphmend" not in run.stdout
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 1),
        ("import sys; sys.exit()", 1),
        ("import sys; sys.exit(0)", 1),
        ("import sys; sys.exit(False)", 1),
        ("import sys; sys.exit(5)", 5),
        ("import sys; sys.exit('text')", 1),
        (SITE, 0),
        (SITE + "import sys; sys.exit(0)", 0),
        (SITE + "raise SystemExit(3)", 3),
        ("import helper", 0),
    ],
)
@pytest.mark.parametrize("how", ["option", "variable"])
def test_strict_fails_where_nothing_was_mended(how, code, status, hooked, project):
    options, env = (["--strict"], {}) if how == "option" else ([], {"GRAPHMEND_STRICT": "1"})
    run = hooked(*options, "-c", code, cwd=project, **env)
    assert run.returncode == status
    assert ("GM004" in run.stderr) == (SITE not in code and "helper" not in code)


def test_strict_refuses_a_module_that_was_imported_too_early(hooked, project):
    (project / "early").mkdir()
    (project / "early" / "sitecustomize.py").write_text("import helper")
    path = f"{project / 'early'}:{project}"
    run = hooked("--strict", "--modules=helper", "train.py", "nodeps", cwd=project, PYTHONPATH=path)
    assert run.returncode == 2
    assert "GM001: helper was imported before" in run.stderr
    assert run.stdout == ""
    assert hooked("--modules=helper", "train.py", "nodeps", cwd=project, PYTHONPATH=path).returncode == 0


def test_report_goes_where_it_was_asked_for_even_if_the_program_moves(hooked, project, tmp_path):
    hooked("--report=here.json", "-c", SITE + f"import os; os.chdir({str(tmp_path)!r})", cwd=project)
    assert (project / "here.json").exists()


def test_cache_goes_where_it_was_asked_for_even_if_the_program_moves(hooked, project, tmp_path):
    (project / "moves.py").write_text(f"import os, sys; os.chdir({str(tmp_path)!r}); import helper")
    hooked("--cache-dir=store", "moves.py", cwd=project)
    assert list((project / "store").rglob("helper.*.gmc"))
    assert not (tmp_path / "store").exists()


def test_second_run_takes_the_script_from_the_cache(hooked, project):
    hooked("train.py", "nodeps", cwd=project)
    run = hooked("--report", "train.py", "nodeps", cwd=project)
    assert re.search(r" mended in 3 of \d+ modules; cache: \d+ hits, 0 misses;", run.stderr)


def test_edited_script_is_mended_again(hooked, project):
    assert hooked("train.py", "nodeps", cwd=project).stdout == "site __main__ 1\n"
    train = project / "train.py"
    train.write_text(train.read_text().replace("'site'", "'edit'"))
    run = hooked("--report", "train.py", "nodeps", cwd=project)
    assert run.stdout == "edit __main__ 1\n"
    assert re.search(r" mended in 3 of \d+ modules; cache: \d+ hits, 1 miss;", run.stderr)


def test_mended_main_is_what_runs(hooked, project):
    run = hooked("-c", SITE + "print(site.__code__.co_names)", cwd=project)
    assert "_@graphmend" in run.stdout


@pytest.mark.parametrize("python_option", [(), ("-B",), ("-I",), ("-O",), ("-s",), ("-E",)])
def test_flags_of_python_do_not_keep_the_script_from_being_mended(python_option, hooked, project):
    run = hooked("--report", "-c", SITE, cwd=project, flags=python_option)
    assert " mended in 1 of " in run.stderr
