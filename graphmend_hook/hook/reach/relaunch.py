"""Starting python anew by our runner, for a script that python would run without asking any import hook.

`sitecustomize` calls this in child processes, before anything of the script runs.  The process stays the same, with
its number, its files and its environment; it only runs ``python -m graphmend_hook script.py`` from then on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ...diagnostics import say_failed
from .. import install

_WITH_VALUE = {"W", "X"}  # options of python itself; behind these stands a word of their own
_NO_SCRIPT = {"c", "m", "x"}  # what follows is no script, or its first line is to be passed over
RELAUNCHED = "_GRAPHMEND_RELAUNCHED"  # a variable: the process that was started anew
_LONG_WITH_VALUE = "--check-hash-based-pycs"


def relaunch() -> None:
    """Run the script of this process by our runner, if a hook covers it and its text has something to mend.

    Does not return then.  Not on Windows, where a process cannot go on as another program.
    """
    try:
        index = script_index(sys.orig_argv)
        if os.environ.get(RELAUNCHED) == str(os.getpid()):
            return
        if index is None or not _is_this_python(sys.executable) or not _is_worth_it(sys.orig_argv[index]):
            return
        before, program = sys.orig_argv[:index], sys.orig_argv[index:]
        if before[-1] == "--":
            before.pop()
        os.environ[RELAUNCHED] = str(os.getpid())
        os.execv(sys.executable, [*before, "-m", __name__.partition(".")[0], *program])
    except FileNotFoundError:  # the current directory is gone
        return
    except Exception as error:
        say_failed("the import hook", "starting the program anew", error)


def _is_this_python(path: str) -> bool:
    """Is it the python that this process runs?  A program may have python inside, and a script may stand before it."""
    this = "/proc/self/exe"
    if os.name != "posix" or not os.path.basename(os.path.realpath(path)).startswith("python"):
        return False
    if not os.path.exists(this):  # not Linux
        this = sys.orig_argv[0]
    return os.sep in this and os.path.exists(this) and os.path.samefile(this, path)


def script_index(argv: Sequence[str]) -> int | None:
    """Where in the command line of a python the script stands, None where it runs none."""
    words = iter(range(1, len(argv)))
    for index in words:
        word = argv[index]
        if word == "--":
            following = next(words, None)
            return None if following is None or argv[following].startswith("-") else following
        if word == "-" or not word.startswith("-"):
            return None if word == "-" else index
        if word == _LONG_WITH_VALUE:
            next(words, None)
        if word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in _NO_SCRIPT:
                return None
            if letter in _WITH_VALUE:
                if place == len(word):
                    next(words, None)
                break
    return None


def _is_worth_it(script: str) -> bool:
    path = os.path.join(os.getcwd(), script)
    covering = [hook for hook in install.active() if hook.allowlist.covers("__main__", os.path.abspath(path))]
    if not covering or not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        source = stream.read()
    try:
        return any(hook.mender.result(path, source)[0].code is not None for hook in covering)
    except (SyntaxError, ValueError):  # an archive, bytecode, or what python is to complain about
        return False
