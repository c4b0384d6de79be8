"""A pattern that has matched nothing is told of at exit, with the name that was meant perhaps."""

from __future__ import annotations

import pytest

# A torch that is quickly imported: what is said rests on its having been.
START = "import graphmend_hook, sys, types; sys.modules['torch'] = types.ModuleType('torch'); "


SAID = {
    "gm_libary": "there is no module 'gm_libary'; did you mean 'gm_library'?",
    "gm_library.modelz": "no such module was imported; did you mean 'gm_library.models'?",
    "gm_library.other": "no such module was imported",
    "gm_library.*.x": "no such module was imported",
    "zzzzzzz": "there is no module 'zzzzzzz'",
    "./nowhere": "there is no such directory or file",
    "./elsewhere": "no module of it was imported",
    "gm_library": "",
    "gm_library.models": "",
    "gm_*": "",
    ".": "",
}


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        *(("variable", pattern) for pattern in SAID),
        *((form, pattern) for form in ("install", "runner") for pattern in ("gm_libary", "./nowhere", "gm_library")),
    ],
)
def test_what_is_said(form, pattern, python, write, tmp_path):
    said = SAID[pattern]
    write("gm_library/__init__.py", "")
    write("gm_library/models.py", "def f(x):\n    print(x)\n")
    (tmp_path / "elsewhere").mkdir()
    code = START + ("graphmend_hook.install(sys.argv[1]); " if form == "install" else "") + "import gm_library.models"
    words = ("-m", "graphmend_hook", f"--modules={pattern}") if form == "runner" else ()
    env = {"GRAPHMEND_MODULES": pattern} if form == "variable" else {}
    ran = python(*words, "-c", code, pattern, **env)
    expected = f"GM018: {pattern!r}, one of the modules to mend, has matched nothing in this process: {said}\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", expected if said else "")


@pytest.mark.parametrize("case", ["no torch", "uninstalled", "disabled", "default", "child", "fork"])
def test_where_nothing_is_said(case, python, write, tmp_path):
    code = START + "hook = graphmend_hook.install('zzzzzzz', disable=sys.argv[1] == 'disabled')"
    if case == "no torch":
        code += "; del sys.modules['torch']"
    if case == "uninstalled":
        code += "; hook.uninstall()"
    if case == "fork":  # the child does not say again what its parent says
        code += "; import os; os.fork() and os.wait()"
    if case == "child":
        code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {START!r}]).returncode)"
        ran = python("-m", "graphmend_hook", "--modules=zzzzzzz", "-c", code)
        assert (ran.stdout, ran.stderr) == ("0\n", "")
        return
    words = ("-m", "graphmend_hook", "-c", START) if case == "default" else ("-c", code)
    assert python(*words, case).stderr.count("GM018") == (1 if case == "fork" else 0)
