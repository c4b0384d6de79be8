"""Child processes of a program have the hook too, by way of their environment, unless it is asked not to."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import graphmend_hook
from graphmend_hook.hook.reach import relaunch
from graphmend_hook.settings.config import RULE_NAMES

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


# Starts processes that run functions of the program's own, each of which says whether it is mended there.
PROGRAM = """
import concurrent.futures, multiprocessing, os, subprocess, sys

def own(x):
    print("own", x)
    return x

def show(who):
    print(who, __name__, "_@graphmend" in own.__code__.co_names, flush=True)

def task(_):
    return __name__, "_@graphmend" in own.__code__.co_names

def ways(way):
    if way == "script":
        subprocess.run([sys.executable, "-u", "-Wignore", "-X", "utf8", __file__, "end"], check=True)
    elif way == "pool":
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            print("pool", *list(pool.map(task, [1]))[0], flush=True)
    else:
        process = multiprocessing.get_context(way).Process(target=show, args=(way,))
        process.start()
        process.join()

if __name__ == "__main__":
    if sys.argv[1] == "end":
        show("script")
    else:
        ways(sys.argv[1])
"""
PROGRAM_NAMES = {"script": "__main__", "spawn": "__mp_main__", "forkserver": "__mp_main__", "pool": "__mp_main__"}


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


@pytest.mark.parametrize(
    ("way", "form", "options"),
    [
        *((way, "script", ()) for way in PROGRAM_NAMES),
        *((way, "module", ()) for way in ("script", "spawn")),
        *((way, form, ("--modules=elsewhere",)) for way in ("script", "spawn") for form in ("script", "module")),
    ],
)
def test_functions_of_the_program_are_mended_in_children(way, form, options, write, hooked):
    write("train.py", PROGRAM)
    words = ("train.py",) if form == "script" else ("-m", "train")
    run = hooked(*options, *words, way)
    # A module that is started as a script is another program than the one that its parent was told to mend.
    mended = not (way == "script" and form == "module" and options)
    assert (run.stdout, run.stderr) == (f"{way} {PROGRAM_NAMES[way]} {mended}\n", "")


@pytest.mark.parametrize("option", ["--no-children", "--disable", "--deny=__main__", "--rules=none"])
@pytest.mark.parametrize("way", ["script", "spawn"])
def test_functions_of_the_program_are_left_alone_if_told_so(way, option, write, hooked):
    write("train.py", PROGRAM)
    run = hooked(option, "train.py", way)
    assert (run.stdout, run.stderr) == (f"{way} {PROGRAM_NAMES[way]} False\n", "")


@pytest.mark.parametrize("way", ["script", "spawn"])
def test_install_with_children(way, write, python, tmp_path):
    """Until the hook is uninstalled; then the environment is what it was."""
    write("train.py", PROGRAM.replace("train.py", "x"))
    write(
        "start.py",
        f"""
        import os, subprocess, sys, graphmend_hook
        if __name__ == "__main__":
            before = dict(os.environ)
            hook = graphmend_hook.install({str(tmp_path)!r}, children=True)
            assert graphmend_hook.install({str(tmp_path)!r}, children=True) is hook
            subprocess.run([sys.executable, "train.py", {way!r}])
            hook.uninstall()
            subprocess.run([sys.executable, "train.py", {way!r}])
            assert dict(os.environ) == before
        """,
    )
    run = python("start.py", PYTHONPATH="/nowhere")
    name = PROGRAM_NAMES[way]
    assert (run.stdout, run.stderr) == (f"{way} {name} True\n{way} {name} False\n", "")


def test_script_with_nothing_to_mend_is_not_started_anew(write, hooked):
    write("child.py", "import sys; print(sys.orig_argv[1:])")
    write("train.py", "import subprocess, sys; subprocess.run([sys.executable, '-B', 'child.py', 'x'])")
    assert hooked("train.py").stdout == "['-B', 'child.py', 'x']\n"


def test_script_that_is_started_anew_is_the_same_program(write, python, hooked, tmp_path):
    """But for the words of its command line that it was not given: process, descriptors, flags, stdin, exit status."""
    write(
        "child.py",
        """
        import os, sys
        def own(x):
            print("own", x)
        print(__name__, __file__, __spec__, sys.argv, sys.path[0], sys.flags, os.getpid() == os.getppid())
        print(os.read(int(sys.argv[1]), 5), sys.stdin.read(), "_@graphmend" in own.__code__.co_names)
        sys.exit(3)
        """,
    )
    write(
        "train.py",
        """
        import os, subprocess, sys
        read, written = os.pipe()
        os.write(written, b"piped")
        command = [sys.executable, "-X", "dev", "-Wd", "-u", "./child.py", str(read), "-m", "x"]
        child = subprocess.Popen(command, pass_fds=[read], stdin=subprocess.PIPE)
        child.communicate(b"given")
        print(child.returncode)
        """,
    )
    plain, ours = python("train.py"), hooked("train.py")
    assert ours.stdout == plain.stdout.replace("given False", "given True")
    assert ours.stdout.endswith("b'piped' given True\n3\n")
    assert ours.stderr == plain.stderr


@pytest.mark.parametrize("before", [["--"], ["-i"], ["-u", "--"]])
def test_options_in_front_of_a_script_that_is_started_anew(before, write, python, hooked):
    write("child.py", "def own(x):\n    print(x)\nprint(__name__, '_@graphmend' in own.__code__.co_names)\n")
    write("train.py", f"import subprocess, sys\nsubprocess.run([sys.executable, *{before}, 'child.py'], input=b'')\n")
    plain, ours = python("train.py"), hooked("train.py")
    assert ours.stdout == plain.stdout.replace("False", "True") == "__main__ True\n"
    assert ours.stderr == plain.stderr


def test_another_python_than_this_one_is_not_started(write, hooked, tmp_path):
    """A script in front of python, as pyenv has, is what `sys.executable` names then."""
    shim = write("bin/python3", "#!/bin/sh\necho SHIM\n")
    shim.chmod(0o755)
    write("child.py", "def own(x):\n    print(x)\nprint('child')\n")
    write(
        "train.py",
        f"""
        import os, subprocess, sys
        env = {{**os.environ, "PATH": {str(shim.parent)!r} + ":" + os.environ["PATH"]}}
        subprocess.run(["python3", "child.py"], executable=os.path.realpath(sys.executable), env=env)
        """,
    )
    assert "SHIM" not in hooked("train.py").stdout


def test_sitecustomize_of_the_users_own_sees_the_hook(write, hooked, tmp_path):
    """In a script that is started anew, as in every other child: what it imports is mended, not imported too early."""
    write("site/sitecustomize.py", "import helper; print('_@graphmend' in helper.site.__code__.co_names)")
    write("helper.py", SITE)
    write("child.py", SITE + "print('child', '_@graphmend' in site.__code__.co_names)")
    write(
        "train.py",
        f"""
        import os, subprocess, sys
        def own(x):
            print(x)
        os.environ["PYTHONPATH"] += ":{tmp_path}/site:{tmp_path}"
        sys.exit(subprocess.run([sys.executable, "child.py"]).returncode)
        """,
    )
    run = hooked("--strict", "train.py")
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\nchild True\n", "")


def test_two_hooks_with_children(tmp_path, python):
    """In any order: those that remain have children, and in the end the environment is what it was."""
    code = """
    import os, graphmend_hook
    before = dict(os.environ)
    a, b = (graphmend_hook.install(name, children=True) for name in ("aaa", "bbb"))
    a.uninstall()
    assert os.environ["GRAPHMEND_MODULES"] == "bbb" and "bootstrap" in os.environ["PYTHONPATH"]
    b.uninstall()
    assert dict(os.environ) == before
    """
    run = python("-c", textwrap.dedent(code), PYTHONPATH="/nowhere")
    assert (run.stdout, run.stderr) == ("", "")


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("s.py -m x", "s.py"),
        ("-u -B s.py", "s.py"),
        ("-W ignore -Xdev -X utf8 s.py", "s.py"),
        ("-uWignore -OX dev s.py", "s.py"),
        ("--check-hash-based-pycs never s.py", "s.py"),
        ("-- s.py", "s.py"),
        ("-x s.py", None),
        ("-ux s.py", None),
        ("-c code s.py", None),
        ("-um module s.py", None),
        ("-mmodule s.py", None),
        ("- s.py", None),
        ("-- - s.py", None),
        ("-- -s.py", None),
        ("-W", None),
        ("--", None),
        ("", None),
    ],
)
def test_where_the_script_stands(words, script):
    argv = ["python", *words.split()]
    index = relaunch.script_index(argv)
    assert (None if index is None else argv[index]) == script


def test_no_children_leaves_the_environment_as_it_was(project, python, hooked):
    code = "import os; print({k: v for k, v in os.environ.items() if k.startswith(('PYTHON', 'GRAPHMEND_'))})"
    assert hooked("--no-children", "-c", code).stdout == python("-c", code).stdout


@pytest.mark.parametrize("way", list(START))
def test_disabled_hook_is_disabled_in_children(way, project, hooked):
    run = hooked("--disable", f"by_{way}.py", PYTHONPATH=str(project))
    assert run.stdout.split(" ", 1)[1] == "False 0 []\n"


def test_child_has_the_settings_that_the_options_gave(project, hooked, tmp_path):
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'from graphmend_hook.settings.config import Settings;"
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
        f"guards='keep', values=(), cache_dir=PosixPath('{tmp_path}/store'), strict=True, report='{tmp_path}/r.json', log='ERROR', late=False, disable=False)"
    )
    assert run.stdout.strip() == expected


def test_empty_option_clears_a_variable_for_children(project, hooked):
    code = "import os; from graphmend_hook.settings.config import Settings; print(Settings.from_env(os.environ) == Settings())"
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
