"""Strict mode under plain python: status 1 where nothing was mended, and nothing else of the end is changed."""

from __future__ import annotations

import signal

import pytest

from graphmend_hook.hook.reach.children import BOOTSTRAP

START = """\
import atexit, sys
class Late:
    def __del__(self):
        print("taken away")
late = Late()
atexit.register(print, "exit function")
"""
STRICT = {"GRAPHMEND_STRICT": "1", "GRAPHMEND_MODULES": "gm_lib"}
FORMS = ("script", "-c", "-m", "sitecustomize")
ENDINGS = {
    # what the program does: its status
    "": 1,
    "import gm_lib": 0,
    "sys.exit()": 1,
    "sys.exit(0)": 1,
    "sys.exit(3)": 3,
    "sys.exit('words')": 1,
    "1 / 0": 1,
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM,
    "raise KeyboardInterrupt": -signal.SIGINT,
    "import os; os.fork() or sys.exit(0); os.wait(); import gm_lib": 0,
}


@pytest.fixture
def project(write):
    write("gm_lib.py", "def f(x):\n    print(x)\n")


def start(form, code, python, write):
    """Run `code`, behind START, in one of FORMS: under sitecustomize for a process that has imported torch."""
    hook = "import types; sys.modules['torch'] = types.ModuleType('torch')\n"
    text = START + (hook if form == "sitecustomize" else "import graphmend_hook\n") + code
    write("program.py", text)
    words = {"-c": ("-c", text), "-m": ("-m", "program")}.get(form, ("program.py",))
    return python(*words, **STRICT, **({"PYTHONPATH": BOOTSTRAP} if form == "sitecustomize" else {}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", list(ENDINGS))
def test_status(code, form, python, write, project):
    ran = start(form, code, python, write)
    assert ran.returncode == ENDINGS[code], ran.stderr
    if ENDINGS[code] != -signal.SIGTERM and "fork" not in code:
        assert ran.stdout == "exit function\ntaken away\n"  # all of it, through a pipe
        assert ("GM004" in ran.stderr) == (code != "import gm_lib")


@pytest.mark.parametrize("form", ["script", "sitecustomize"])
def test_a_script_that_raises_system_exit_itself_keeps_its_status(form, python, write, project):
    assert start(form, "raise SystemExit(4)", python, write).returncode == 4


def test_without_strict_mode_sys_exit_is_left_alone(python, write):
    ran = python("-c", "import graphmend_hook, sys; print(sys.exit)", GRAPHMEND_MODULES="gm_lib")
    assert (ran.returncode, ran.stdout) == (0, "<built-in function exit>\n")


def test_helper_processes_keep_their_status(python, write, project):
    """Under sitecustomize, those without torch; everywhere, those of multiprocessing."""
    assert python("-c", "print()", **STRICT, PYTHONPATH=BOOTSTRAP).returncode == 0
    code = """
    import multiprocessing, sys
    import graphmend_hook
    if __name__ == "__main__":
        child = multiprocessing.get_context("spawn").Process(target=print)
        child.start()
        child.join()
        print(child.exitcode)
    """
    write("program.py", code)
    ran = python("program.py", **STRICT)
    assert (ran.returncode, ran.stdout) == (1, "\n0\n"), ran.stderr


def test_streams_that_are_closed(python, write, project):
    assert python("-c", "import graphmend_hook, sys; sys.stdout.close(); sys.stderr = None", **STRICT).returncode == 1


@pytest.mark.parametrize("words", [(), ("-m", "graphmend_hook", "--report")], ids=["import", "runner"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_report_leaves_the_end_by_a_signal_as_it_is(number, words, python, project):
    code = f"import graphmend_hook, gm_lib, os; os.kill(os.getpid(), {int(number)})"
    ran = python(*words, "-c", code, GRAPHMEND_REPORT="-", GRAPHMEND_MODULES="gm_lib")
    assert ran.returncode == -number
    assert ("1 site mended" in ran.stderr) == (number == signal.SIGINT)
