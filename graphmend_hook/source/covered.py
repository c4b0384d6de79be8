"""Which functions the tracer is to look at: those of modules that went through the rules, rewritten or not.

Numbers that count calls, for one, are no matter of how a statement is written: a module may need nothing else.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from .templates import RUNTIME

_modules: set[tuple[str, str]] = set()  # by name and file: one file may be imported twice, and mended once


def cover(name: str, path: str) -> None:
    """Look at the module's functions, also where the program is run as a script or by ``-m``."""
    _modules.update(((name, path), ("__main__", path)))


def is_covered(code: CodeType, names: dict[str, Any]) -> bool:
    """Is it code of such a module?  names: its globals."""
    return RUNTIME in names or (names.get("__name__"), code.co_filename) in _modules
