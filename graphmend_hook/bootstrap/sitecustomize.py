"""Switches graphmend_hook on in this process if GRAPHMEND_MODULES is set, then runs the sitecustomize it hides.

Python's `site` imports a module of this name when it starts, from the first directory of `sys.path` that has one.
PYTHONPATH leads every python here that a process starts, whatever its version: so this file keeps to a syntax that all
of them read, and raises nothing of its own.
"""

import os
import sys


def _leave_path():  # type: () -> None
    """Take this directory off `sys.path`, where only `site` needs it.  PYTHONPATH stays, for child processes."""
    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]


def _switch_on():  # type: () -> None
    """Import graphmend_hook, which installs itself, and let it run a script.  A program must start even if it fails."""
    try:
        import graphmend_hook  # noqa: F401
        from graphmend_hook.hook.reach import relaunch

        relaunch.relaunch()
        if "_GRAPHMEND_OBSERVED" in os.environ:  # `graphmend explain` follows the processes of its program
            from graphmend_hook.product.explain import following

            following.start()
    except Exception as error:
        _say("graphmend_hook: not active in process %d: %s\n" % (os.getpid(), error))  # noqa: UP031


def _say(message):  # type: (str) -> None
    try:
        sys.stderr.write(message)
    except Exception:  # stderr is None or closed, and there is nobody else to tell
        pass


def _run_hidden():  # type: () -> None
    """Import the sitecustomize that this one hides, if there is one; what it raises is for `site` to show."""
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise
        sys.modules[__name__] = own  # the import system wants to find a module of this name at the end


_leave_path()
if os.environ.get("GRAPHMEND_MODULES"):
    _switch_on()
_run_hidden()
