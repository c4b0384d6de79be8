"""Which functions the tracer is to look at: those of modules that went through the rules, rewritten or not.

Numbers that count calls, for one, are no matter of how a statement is written: a module may need nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Any

from .templates import RUNTIME

# The names of the rules, by name and file: one file may be imported twice, and mended once.
_modules: dict[tuple[str | None, str], frozenset[str]] = {}


def cover(name: str, path: str, rules: Iterable[str]) -> None:
    """Look at the module's functions, also where the program is run as a script or by ``-m``.

    rules: the names of those that are on; none is switched off in a part of the module.
    """
    _modules.update(dict.fromkeys(((name, path), ("__main__", path)), frozenset(rules)))


def is_covered(code: CodeType, names: dict[str, Any]) -> bool:
    """Is it code of such a module?  names: its globals."""
    return RUNTIME in names or (names.get("__name__"), code.co_filename) in _modules


def is_under(rule: str, code: CodeType, names: dict[str, Any]) -> bool:
    """Is that rule on in all of the module?"""
    return rule in _modules.get((names.get("__name__"), code.co_filename), ())
