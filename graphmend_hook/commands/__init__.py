"""The commands of ``graphmend``, one module each.

A module of a command has HELP, a line for the list of commands, ``add_arguments(parser)``, and ``run(options)``, which
returns the exit status.  It imports no torch.
"""

from __future__ import annotations

NAMES = ("cache", "demo", "diff", "doctor", "explain", "report", "rules")
# After their options stands a program with options of its own: `options.program`.
BEFORE_A_PROGRAM = ("doctor", "explain")
