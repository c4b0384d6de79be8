"""The commands of ``graphmend``, one module each.

A module of a command has HELP, a line for the list of commands, ``add_arguments(parser)``, and ``run(options)``, which
returns the exit status.  It imports no torch.
"""

from __future__ import annotations

import importlib.util
import sys

from ...diagnostics import GraphmendError

NAMES = ("cache", "demo", "diff", "doctor", "explain", "report", "rules")
# After their options stands a program with options of its own: `options.program`.
BEFORE_A_PROGRAM = ("doctor", "explain")


def require(*packages: str) -> None:
    """Raise GraphmendError for the first of `packages` that this python has not, with what installs it."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            install = f'{sys.executable} -m pip install "graphmend_hook[demo]"'
            raise GraphmendError(f"{package} is not installed for {sys.executable}; {install}")
