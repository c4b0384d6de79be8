"""Which code is this package's own: what rewritten code calls, and Dynamo inlines."""

from __future__ import annotations

from pathlib import Path
from types import CodeType

_PACKAGE = Path(__file__).parents[1]
_PROGRAMS = {"probe_programs.py"}  # which stand for the program's own
FILES = tuple(
    sorted(file for part in ("dynamo/*.py", "runtime/*.py", "rules/**/traced_*.py") for file in _PACKAGE.glob(part))
)
OWN_FILES = frozenset(str(file) for file in FILES if file.name not in _PROGRAMS)


def is_own(code: CodeType) -> bool:
    """Is it code of a function that rewritten code calls, and not the program's?"""
    return code.co_filename in OWN_FILES
