"""What runs a program itself, in front of the program: one line says so, and what it advises mends the program."""

from __future__ import annotations

import importlib.util
import py_compile
import shutil

import pytest

from graphmend_hook.program import LAUNCHERS

PROGRAM = """
def own(x):
    print("own", x)
    return x

print("MENDED", "_@graphmend" in own.__code__.co_names)
"""
# Each with the words that stand between its name and the program.
WORDS = {"cProfile": "", "profile": "", "pdb": "-c continue -c quit", "trace": "--count", "coverage": "run"}


@pytest.mark.parametrize("launcher", list(WORDS))
def test_advice_is_given_and_helps(launcher, write, hooked, python, tmp_path):
    if importlib.util.find_spec(launcher) is None:
        pytest.skip(f"needs {launcher}")
    write("train.py", PROGRAM)
    if launcher == "trace":
        WORDS[launcher] += f" --coverdir {tmp_path}"
    before = hooked("-m", launcher, *WORDS[launcher].split(), "train.py")
    assert "MENDED False" in before.stdout
    assert before.stderr.startswith(f"GM015: {launcher} runs the program itself")
    assert LAUNCHERS[launcher] in before.stderr
    _, _, advised, *words = LAUNCHERS[launcher].split()
    words = [word for word in words if word not in {"OPTIONS", "run", "PROGRAM"}]
    after = python("-m", advised, *WORDS[launcher].split(), *words, "train.py")
    assert "MENDED True" in after.stdout, after.stderr
    assert "GM015" not in after.stderr


def test_nothing_is_said_where_nothing_is_mended(write, hooked):
    write("train.py", PROGRAM)
    assert hooked("--disable", "-m", "cProfile", "train.py").stderr == ""


@pytest.mark.parametrize("compiled", [False, True])
def test_archive(compiled, write, hooked, tmp_path):
    """The program is mended; the modules in the archive are not, and the report says so."""
    write("app/__main__.py", "import inside\n" + PROGRAM)
    write("app/inside.py", PROGRAM.replace("MENDED", "INSIDE"))
    if compiled:
        main = tmp_path / "app/__main__.py"
        py_compile.compile(str(main), cfile=f"{main}c")
        main.unlink()
    shutil.make_archive(str(tmp_path / "app"), "zip", tmp_path / "app")
    run = hooked("--report", "app.zip")
    assert run.stdout == f"INSIDE False\nMENDED {not compiled}\n"
    assert "loaded by zipimport.zipimporter" in run.stderr
