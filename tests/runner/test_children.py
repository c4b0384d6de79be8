"""Child processes of a program have the hook too, by way of their environment, unless it is asked not to."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import graphmend_hook
from graphmend_hook.config import RULE_NAMES

SITE = "def site(x):\n    print('site', x)\n    return x\n"
# Prints how a process sees a first-party module, the hook and its environment.
PROBE = """
import os, sys, helper
def show(who):
    finders = [type(finder).__name__ for finder in sys.meta_path]
    mended = "_@graphmend" in helper.site.__code__.co_names
    paths = [os.path.basename(path) for path in sys.path if "bootstrap" in path]
    print(who, mended, finders.count("MendingFinder"), paths, flush=True)
"""
START = {
    "subprocess": """
        import subprocess
        command = [sys.executable, "-c", "import child; child.show('child')"]
        sys.exit(subprocess.run(command).returncode)
    """,
    "shell": 'sys.exit(os.system(f\'"{sys.executable}" -c "import child; child.show(chr(99))"\'))',
    "grandchild": """
        import subprocess
        inner = f'import subprocess, sys; subprocess.run([{sys.executable!r}, "-c", "import child; child.show(1)"])'
        sys.exit(subprocess.run([sys.executable, "-c", inner]).returncode)
    """,
    "exec": "os.execv(sys.executable, [sys.executable, '-c', 'import child; child.show(2)'])",
    "spawn": """
        import child, multiprocessing
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=child.show, args=("spawned",))
            process.start()
            process.join()
            sys.exit(process.exitcode)
    """,
    "fork": """
        import child, multiprocessing
        process = multiprocessing.get_context("fork").Process(target=child.show, args=("forked",))
        process.start()
        process.join()
        sys.exit(process.exitcode)
    """,
}


@pytest.fixture
def project(write, tmp_path: Path) -> Path:
    """A first-party module with a site, a module that shows how that one is seen, and a program for each way to start."""
    write("helper.py", SITE)
    write("child.py", PROBE)
    for name, source in START.items():
        write(f"by_{name}.py", "import os, sys\n" + textwrap.dedent(source))
    return tmp_path


@pytest.mark.parametrize("way", list(START))
def test_child_has_the_hook(way, project, hooked):
    run = hooked(f"by_{way}.py", PYTHONPATH=str(project))
    assert run.returncode == 0, run.stderr
    assert run.stdout.split(" ", 1)[1] == "True 1 []\n"
    assert run.stderr == ""


@pytest.mark.parametrize("env", [{}, {"GRAPHMEND_MODULES": "helper"}], ids=["default", "variable"])
@pytest.mark.parametrize("way", [name for name in START if name != "fork"])
def test_child_has_no_hook_if_told_so(way, env, project, hooked):
    bootstrap = Path(graphmend_hook.__file__).parent / "bootstrap"
    run = hooked("--no-children", f"by_{way}.py", PYTHONPATH=f"{bootstrap}:{project}", **env)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split(" ", 1)[1] == "False 0 []\n"


def test_no_children_leaves_the_environment_as_it_was(project, python, hooked):
    code = "import os; print({k: v for k, v in os.environ.items() if k.startswith(('PYTHON', 'GRAPHMEND_'))})"
    assert hooked("--no-children", "-c", code).stdout == python("-c", code).stdout


@pytest.mark.parametrize("way", list(START))
def test_disabled_hook_is_disabled_in_children(way, project, hooked):
    run = hooked("--disable", f"by_{way}.py", PYTHONPATH=str(project))
    assert run.stdout.split(" ", 1)[1] == "False 0 []\n"


def test_child_has_the_settings_that_the_options_gave(project, hooked, tmp_path):
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'from graphmend_hook.config import Settings;"
        "print(Settings.from_env())'], cwd='/')"
    )
    options = (
        "--modules=a.b,./here",
        "--deny=a.b.c",
        "--cache-dir=store",
        "--report=r.json",
        "--log=error",
        "--guards=keep",
        "--strict",
    )
    overridden = {"GRAPHMEND_RULES": "none", "GRAPHMEND_MODULES": "x", "GRAPHMEND_DENY": "y", "GRAPHMEND_LOG": "debug"}
    run = hooked(*options, "--rules=all", "-c", code, **overridden)
    expected = (
        f"Settings(modules=('a.b', '{tmp_path}/here'), deny=('a.b.c',), rules={RULE_NAMES}, "
        f"guards='keep', values=(), cache_dir=PosixPath('{tmp_path}/store'), strict=True, report='{tmp_path}/r.json', log='ERROR', disable=False)"
    )
    assert run.stdout.strip() == expected


def test_empty_option_clears_a_variable_for_children(project, hooked):
    code = "import os; from graphmend_hook.config import Settings; print(Settings.from_env(os.environ) == Settings())"
    env = {"GRAPHMEND_MODULES": "x", "GRAPHMEND_RULES": "none", "GRAPHMEND_DENY": "y", "GRAPHMEND_CACHE_DIR": ""}
    assert hooked("--modules=", "--rules=all", "--deny", "", "-c", code, **env).stdout == "True\n"


def test_first_party_directory_may_have_any_name(hooked, write):
    """Blanks, commas and what looks like a list of modules: it all travels through one variable."""
    write("a b-c, torch/helper.py", SITE)
    write("a b-c, torch/child.py", PROBE)
    write("a b-c, torch/main.py", "import os, sys\n" + textwrap.dedent(START["spawn"]))
    run = hooked("a b-c, torch/main.py")
    assert (run.stdout, run.stderr) == ("spawned True 1 []\n", "")


@pytest.mark.parametrize("path", [None, "", "one", "one:", ":one", "one::two"])
def test_path_of_children_is_what_it_was_after_ours(path, project, python, hooked):
    """Also where an empty entry stands for the current directory."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)'])"
    env = {} if path is None else {"PYTHONPATH": path}
    assert hooked("-c", code, **env).stdout == python("-c", code, **env).stdout


def test_program_within_a_program_has_one_hook(project, hooked):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'graphmend_hook', '-c', 'import child; child.show(1)'])"
    assert hooked("-c", code, PYTHONPATH=str(project)).stdout == "1 True 1 []\n"


def test_isolated_child_has_no_hook(project, hooked):
    """It reads no PYTHONPATH: this is what isolation means, and the program still runs."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', 'import sys; print(len(sys.path))'])"
    run = hooked("-c", code)
    assert run.returncode == 0
    assert int(run.stdout) >= 2
