"""The compiler's warnings about a module: shown as often as without the hook."""

from __future__ import annotations

from typing import Any

SOURCE = "def f(x):\n    print(x)\n    return x is 1\n\nPATTERN = '\\d'\n"


def test_as_often_as_without_the_hook(python: Any, write: Any) -> None:
    write("app.py", SOURCE)
    write("quiet.py", SOURCE.replace("print(x)", "pass  # print"))
    code = "import app, quiet"
    shown = []
    for modules in ("", "app,quiet"):
        for run in range(2):
            done = python("-W", "always", "-c", f"import graphmend_hook; {code}", GRAPHMEND_MODULES=modules)
            shown.append((run, done.stderr))
        for pyc in write("x", "").parent.glob("__pycache__/*.pyc"):
            pyc.unlink()
    assert shown[:2] == shown[2:]
    assert shown[0][1].count("Warning") == 4
    assert shown[1][1] == ""
