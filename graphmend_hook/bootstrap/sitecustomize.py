"""Switches graphmend_hook on in this process if GRAPHMEND_MODULES is set, then runs the sitecustomize it shadows.

Python imports a module of this name at startup from the first directory of sys.path that has one.  Nothing here may
raise, and without the variable nothing is imported.
"""

import os
import sys


def _graphmend():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if os.environ.get("GRAPHMEND_MODULES"):
        try:
            import graphmend_hook  # noqa: F401
        except Exception as error:
            print(f"graphmend_hook: not active in process {os.getpid()}: {error}", file=sys.stderr)


_graphmend()
del sys.modules["sitecustomize"]  # python then finds the one that this file hides, if there is one
try:
    import sitecustomize  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", sys.modules.get("sitecustomize", type(sys)("sitecustomize")))
