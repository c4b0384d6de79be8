"""The command line: what it refuses and how it says so, and what it has in common with python's own."""

from __future__ import annotations

import py_compile
import zipfile
from pathlib import Path

import pytest

import graphmend_hook

NOT_RUNNABLE = {
    "missing script": ("missing.py",),
    "missing script with arguments": ("./missing.py", "a", "b"),
    "missing script below": ("missing/missing.py",),
    "file as a directory": ("script.py/missing.py",),
    "missing module": ("-m", "missing"),
    "missing module of a package": ("-m", "pkg.missing"),
    "module of a missing package": ("-m", "missing.module"),
    "module of a module": ("-m", "script.module"),
    "module with its suffix": ("-m", "script.py"),
    "package without __main__": ("-m", "pkg"),
    "namespace package": ("-m", "empty"),
    "relative module": ("-m", ".script"),
    "empty module": ("-m", ""),
    "odd module": ("-m", "a b"),
    "module with two dots": ("-m", "pkg..inner"),
    "main": ("-m", "__main__"),
    "package that needs a missing one": ("-m", "needy"),
    "package as __main__": ("-m", "strange"),
    "directory without __main__": ("empty",),
    "directory with dots": ("./empty",),
    "current directory": (".",),
    "current directory with a slash": ("./",),
    "directory above": ("empty/..",),
    "zip without __main__": ("empty.zip",),
    "empty name": ("",),
    "pyc of another version": ("damaged.pyc",),
    "builtin module": ("-m", "sys"),
    "dangling link": ("dangling.py",),
}


@pytest.fixture
def project(write, tmp_path: Path) -> Path:
    """Things that cannot be run, and a script that can."""
    write("script.py", "print('script ran')")
    write("pkg/__init__.py", "")
    write("needy/__init__.py", "import missing_module_of_nobody")
    write("needy/__main__.py", "")
    write("strange/__init__.py", "")
    write("strange/__main__/__init__.py", "")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("other.py", "")
    (tmp_path / "damaged.pyc").write_bytes(b"xx\r\n" + bytes(20))
    return tmp_path


@pytest.mark.parametrize("name", list(NOT_RUNNABLE))
def test_what_python_cannot_run_is_refused_in_its_words(name, project, same):
    ours = same(*NOT_RUNNABLE[name])
    assert ours.returncode in (1, 2)
    assert ours.stdout == ("script ran\n" if name in ("module of a module", "module with its suffix") else "")


def test_truncated_pyc(project, same):
    compiled = Path(py_compile.compile(str(project / "script.py"), cfile=str(project / "cut.pyc")))
    compiled.write_bytes(compiled.read_bytes()[:-9])
    assert same("cut.pyc").returncode == 1


REFUSED = {
    # arguments: what the message must name
    (): "no program to run",
    ("--modules", "x"): "no program to run",
    ("--",): "no program to run",
    ("-m",): "argument expected for the -m option",
    ("-c",): "argument expected for the -c option",
    ("-u", "script.py"): "unknown option -u",
    ("--unknown", "script.py"): "--unknown",
    ("--module", "x", "script.py"): "--module",
    ("--modules",): "--modules",
    ("--modules", "-m", "script"): "--modules: '-m' is not a module pattern",
    ("--modules", "--strict", "script.py"): "--modules: '--strict' is not a module pattern",
    ("--strict=1", "script.py"): "--strict",
    ("--modules", "a b-c", "script.py"): "--modules: 'b-c' is not a module pattern; use a dotted name",
    ("--modules=torch", "script.py"): "--modules: 'torch' cannot be mended; name the libraries",
    ("--modules=*", "script.py"): "--modules: '*' would match every module; start it with a package name",
    ("--modules=a..b", "script.py"): "--modules: 'a..b' is not a module pattern",
    ("--modules=import", "script.py"): "--modules: 'import' is not a module pattern",
    ("--deny=1x", "script.py"): "--deny: '1x' is not a module pattern; use a dotted name",
    (
        "--rules=deferr",
        "script.py",
    ): "--rules: there is no rule 'deferr'; did you mean 'defer'? use all, none, or names out of defer",
    ("--log=loud", "script.py"): "--log: 'loud' is not a level; use debug",
}


@pytest.mark.parametrize("arguments", list(REFUSED), ids=" ".join)
def test_wrong_use_is_refused_with_the_remedy(arguments, project, hooked):
    run = hooked(*arguments)
    assert run.returncode == 2
    assert REFUSED[arguments] in run.stderr
    assert "python -m graphmend_hook" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


WRONG_VARIABLES = {
    "GRAPHMEND_MODULES": ("a b-c", "is not a module pattern; use a dotted name"),
    "GRAPHMEND_DENY": ("a..b", "is not a module pattern; use a dotted name"),
    "GRAPHMEND_RULES": ("deferr", "there is no rule 'deferr'; did you mean 'defer'? use all, none, or names"),
    "GRAPHMEND_STRICT": ("perhaps", "is neither on nor off; use 1 or 0"),
    "GRAPHMEND_DISABLE": ("perhaps", "is neither on nor off; use 1 or 0"),
    "GRAPHMEND_LOG": ("loud", "is not a level; use debug"),
    "GRAPHMEND_MODULE": ("transformers", "is not a setting of graphmend_hook; did you mean GRAPHMEND_MODULES?"),
}


@pytest.mark.parametrize("name", list(WRONG_VARIABLES))
def test_wrong_variable_is_refused_with_the_remedy(name, project, hooked):
    value, remedy = WRONG_VARIABLES[name]
    run = hooked("script.py", **{name: value})
    assert run.returncode == 2
    assert run.stdout == ""
    assert name in run.stderr
    assert remedy in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--modules", "x", "-h"), ("--help", "script.py")])
def test_help(arguments, hooked):
    run = hooked(*arguments)
    assert run.returncode == 0
    assert run.stdout.startswith("usage: python -m graphmend_hook [options] (script.py | -m module | -c code | -)")
    assert "--no-children" in run.stdout


def test_version(hooked):
    run = hooked("--version")
    assert (run.returncode, run.stdout) == (0, f"graphmend_hook {graphmend_hook.__version__}\n")


@pytest.mark.parametrize("options", [("--",), ("--modules=x", "--"), ("--report=r.json", "--strict", "--disable")])
def test_options_end_where_the_program_begins(options, project, hooked):
    assert hooked(*options, "script.py", "--modules").stdout == "script ran\n"


def test_report_takes_no_word_after_it(project, hooked):
    run = hooked("--report", "script.py")
    assert run.stdout == "script ran\n"
    assert run.stderr.startswith("graphmend_hook ")


@pytest.fixture
def graphmend(python, tmp_path):
    """Run the console script as pip installs it."""
    directory = tmp_path / "bin"
    directory.mkdir()
    script = directory / "graphmend"
    script.write_text("import sys\nfrom graphmend_hook.cli import main\nsys.exit(main())\n")
    return lambda *arguments, flags=(): python(*flags, str(script), *arguments)


@pytest.mark.parametrize("flags", [(), ("-I",)])
def test_console_script_runs_as_the_module_does(flags, graphmend, python, write):
    write("probe.py", "import sys\nprint(sys.argv, sys.path, __file__)\nsys.argv[9]\n")
    plain, ours = python(*flags, "probe.py", "run"), graphmend("run", "probe.py", "run", flags=flags)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize("arguments", [(), ("unknown",), ("--unknown",), ("run",), ("run", "-m")])
def test_console_script_refuses_wrong_use(arguments, graphmend):
    run = graphmend(*arguments)
    assert run.returncode == 2
    assert run.stderr.startswith("usage: graphmend")


def test_console_script_interrupt(graphmend, write):
    write("probe.py", "raise KeyboardInterrupt")
    assert graphmend("run", "probe.py").returncode == -2


def test_modules_of_the_current_directory_do_not_shadow_those_that_the_hook_needs(same, write, tmp_path):
    """Python looks into the directory of the script only, so the hook must not look into the current one either."""
    for name in (
        "argparse",
        "ast",
        "bytecode",
        "platformdirs",
        "logging",
        "json",
        "tempfile",
        "hashlib",
        "dataclasses",
    ):
        write(f"{name}.py", "raise RuntimeError('the wrong module')")
    write("sub/program.py", "def f(x):\n    print(x)\nf(1)\n")
    same("sub/program.py")


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ("python -m graphmend_hook --modules x train.py", True),
        ("python -mgraphmend_hook train.py", True),
        ("python -m graphmend_hook.product.explain out.json train.py", True),
        ("python /venv/bin/graphmend doctor", True),
        ("python train.py", False),
        ("python -m train graphmend_hook", False),
    ],
)
def test_our_own_command_lines_read_the_environment_themselves(words, own, monkeypatch):
    monkeypatch.setattr("sys.orig_argv", words.split())
    assert graphmend_hook._is_the_program() is own
