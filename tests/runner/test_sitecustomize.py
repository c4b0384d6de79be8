"""The sitecustomize that switches the hook on at the start of every process, and stays out of the way otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import graphmend_hook

BOOTSTRAP = Path(graphmend_hook.__file__).parent / "bootstrap"
EXAMPLE = Path(__file__).parents[2] / "sitecustomize_example"
SITE = "def site(x):\n    print('site', x)\n    return x\n"
STATE = """\
import sys
ours = sorted(name for name in sys.modules if name.partition(".")[0] in ("graphmend_hook", "bytecode", "platformdirs"))
print(ours)
"""
# What users have in a sitecustomize of their own, good and bad.
CUSTOMS = {
    "quiet": "x = 1",
    "prints": "import sys; print('custom', __name__, __file__, sys.modules[__name__].__dict__ is globals())",
    "raises": "print('before'); raise RuntimeError('custom failed')",
    "raises on import": "import missing_module_of_nobody",
    "raises a nameless ImportError": "raise ImportError('nameless')",
    "raises its own absence": "raise ImportError('absent', name='sitecustomize')",
    "has a syntax error": "x = (",
    "exits": "raise SystemExit(3)",
    "is interrupted": "raise KeyboardInterrupt",
    "replaces itself": "import sys, types; sys.modules[__name__] = types.SimpleNamespace(x='replaced', __file__='none')",
    "imports itself": "import sitecustomize; print(sitecustomize.__file__)",
    "changes the path": "import sys; sys.path.append('/added')",
    "runs the next one": (
        "import sys; sys.path.remove(__file__.rpartition('/')[0]); del sys.modules[__name__]\n"
        "try:\n    import sitecustomize\nexcept ImportError as error:\n    print(error)"
    ),
}
LOOK = "import sys; m = sys.modules.get('sitecustomize'); print(getattr(m, '__file__', None), sys.path, sep=chr(10))"


@pytest.fixture(params=["bootstrap", "example"])
def bootstrap(request) -> str:
    """The directory to put into PYTHONPATH: the one in the package, and the example that is a link to it."""
    return str({"bootstrap": BOOTSTRAP, "example": EXAMPLE}[request.param])


def test_example_is_the_file_of_the_package():
    assert (EXAMPLE / "sitecustomize.py").read_bytes() == (BOOTSTRAP / "sitecustomize.py").read_bytes()
    assert os.readlink(EXAMPLE / "sitecustomize.py") == "../graphmend_hook/bootstrap/sitecustomize.py"


def test_hook_is_on_in_every_process(bootstrap, python, write):
    write("library.py", SITE)
    write("main.py", "import library; print('_@graphmend' in library.site.__code__.co_names)")
    inner = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, 'main.py']).returncode)"
    for arguments in (("main.py",), ("-m", "main"), ("-c", "import main"), ("-c", inner)):
        run = python(*arguments, PYTHONPATH=bootstrap, GRAPHMEND_MODULES="library")
        assert (run.stdout, run.stderr, run.returncode) == ("True\n", "", 0)


def test_nothing_is_imported_without_the_variable(bootstrap, python):
    for env in ({}, {"GRAPHMEND_MODULES": ""}, {"GRAPHMEND_RULES": "none"}):
        assert python("-c", STATE, PYTHONPATH=bootstrap, **env).stdout == "[]\n"
    assert "graphmend_hook" in python("-c", STATE, PYTHONPATH=bootstrap, GRAPHMEND_MODULES="x").stdout


def test_directory_leaves_the_path_and_stays_for_grandchildren(bootstrap, python, tmp_path):
    code = "import os, sys; print(sys.path, os.environ['PYTHONPATH'])"
    expected = python("-c", code, PYTHONPATH="other").stdout.replace("] other\n", f"] {bootstrap}/:other\n")
    assert python("-c", code, PYTHONPATH=f"{bootstrap}/:other").stdout == expected


@pytest.mark.parametrize("modules", ["", "library"], ids=["off", "on"])
@pytest.mark.parametrize("name", list(CUSTOMS))
def test_hidden_sitecustomize_runs_as_without_ours(name, modules, bootstrap, python, write, tmp_path):
    custom = str(write("custom/sitecustomize.py", CUSTOMS[name]).parent)
    plain = python("-c", LOOK, PYTHONPATH=custom)
    ours = python("-c", LOOK, PYTHONPATH=f"{bootstrap}:{custom}", GRAPHMEND_MODULES=modules)
    if name == "raises its own absence":
        plain.stdout, ours.stdout = plain.stdout.partition("\n")[2], ours.stdout.partition("\n")[2]
    if "Traceback" in plain.stderr:  # ours has frames that plain python has not
        plain.stderr, ours.stderr = (run.stderr.splitlines()[-1] for run in (plain, ours))
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


def test_hidden_sitecustomize_sees_the_hook(bootstrap, python, write):
    write("library.py", SITE)
    write("custom/sitecustomize.py", "import library; print('_@graphmend' in library.site.__code__.co_names)")
    assert python("-c", "pass", PYTHONPATH=f"{bootstrap}:custom:.", GRAPHMEND_MODULES="library").stdout == "True\n"


def test_both_of_ours_and_one_of_the_user(python, write):
    write("custom/sitecustomize.py", "import sys; print('custom', sum('Mending' in repr(f) for f in sys.meta_path))")
    run = python("-c", "pass", PYTHONPATH=f"{BOOTSTRAP}:{EXAMPLE}:custom", GRAPHMEND_MODULES="library")
    assert (run.stdout, run.stderr) == ("custom 1\n", "")


def test_no_hidden_sitecustomize(bootstrap, python):
    assert python("-c", "import sitecustomize; print('fine')", PYTHONPATH=bootstrap).stdout == "fine\n"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"GRAPHMEND_MODULES": "a b-c"}, "GRAPHMEND_MODULES: 'b-c' is not a module pattern"),
        ({"GRAPHMEND_MODULES": "x", "GRAPHMEND_RULES": "no-such"}, "GRAPHMEND_RULES: there is no rule 'no-such'"),
        (
            {"GRAPHMEND_MODULES": "x", "GRAPHMEND_STRICT": "perhaps"},
            "GRAPHMEND_STRICT: 'perhaps' is neither on nor off",
        ),
        ({"GRAPHMEND_MODULES": "x", "GRAPHMEND_RULE": "1"}, "GRAPHMEND_RULE is not a setting"),
        ({"GRAPHMEND_MODULES": "broken_package"}, "broken on purpose"),
    ],
)
@pytest.mark.parametrize("code", ["print('ran')", "import sys; sys.exit(print('ran'))"])
def test_program_starts_even_if_the_hook_cannot(code, env, message, bootstrap, python, write):
    write("custom/sitecustomize.py", "print('custom')")
    path = f"{bootstrap}:custom"
    if env["GRAPHMEND_MODULES"] == "broken_package":
        write("broken/graphmend_hook/__init__.py", "raise ZeroDivisionError('broken on purpose')")
        path += ":broken"
    run = python("-c", code, PYTHONPATH=path, **env)
    assert (run.stdout, run.returncode) == ("custom\nran\n", 0)
    assert run.stderr.startswith("graphmend_hook: not active in process ")
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("stderr", ["os.close(2)", "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)"])
def test_program_starts_even_if_there_is_nobody_to_tell(stderr, bootstrap, python):
    if "/dev/full" in stderr and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    env = f"dict(os.environ, PYTHONPATH={bootstrap!r}, GRAPHMEND_MODULES='a b-c')"
    run = python(
        "-c", f"import os, sys; {stderr}; os.execve(sys.executable, [sys.executable, '-c', 'print(1)'], {env})"
    )
    assert run.stdout == "1\n"


def test_missing_package(python, tmp_path):
    """As in another environment that PYTHONPATH leads here too."""
    run = python(
        "-I",
        "-S",
        "-c",
        f"""if True:
        import os, runpy, sys
        sys.path = [path for path in sys.path if "packages" not in path]
        os.environ["GRAPHMEND_MODULES"] = "x"
        sys.path.insert(0, {str(BOOTSTRAP)!r})
        import sitecustomize
        print(sitecustomize.__file__, sys.path[:1])
    """,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(BOOTSTRAP))
    assert run.stderr.startswith("graphmend_hook: not active in process ")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8"])
def test_other_pythons_start_as_ever(version, tmp_path, python):
    """PYTHONPATH is inherited by every python that a program starts, also by much older ones."""
    roots = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = next(iter(map(str, roots.glob(f"{version}.*/bin/python"))), None)
    if found is None:
        pytest.skip(f"there is no python {version} here")
    code = f"import subprocess, sys; sys.exit(subprocess.call([{found!r}, '-c', 'import sys; print(sys.version_info[0])']))"
    run = python("-c", code, PYTHONPATH=str(BOOTSTRAP))
    assert (run.stdout, run.stderr, run.returncode) == (f"{version[0]}\n", "", 0)
