"""Says at exit which of the patterns that a user gave have matched nothing, and which name was meant perhaps."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache

from ..diagnostics import notice, say_failed
from ..product.report.exit import say
from ..product.report.ledger import ledger
from ..product.report.status import at_exit
from ..settings.syntax import is_directory_pattern
from .allowlist import PatternSet
from .install import Hook
from .reach.children import is_child


@cache
def tell_at_exit(hook: Hook) -> None:
    """Say it when this process ends, for the patterns of `hook`, if it is still installed then.

    Not in child processes, which inherit the patterns and may do something else, nor where torch was never imported.
    """
    at_exit(lambda: _tell(hook))


def _tell(hook: Hook) -> None:
    if is_child() or "torch" not in sys.modules or not hook.installed:
        return
    try:
        ledger.complete()
        for pattern in hook.settings.modules:
            patterns = PatternSet([pattern])
            if not any(patterns.matches_name(each.name) or patterns.matches_file(each.path) for each in ledger.records):
                say(notice("GM018", pattern=pattern, why=_why(pattern)) + "\n")
    except Exception as error:
        say_failed("the end of the process", "looking for patterns that matched nothing", error)


def _why(pattern: str) -> str:
    if is_directory_pattern(pattern):
        path = os.path.abspath(os.path.expanduser(pattern))
        return "no module of it was imported" if os.path.exists(path) else "there is no such directory or file"
    import pkgutil

    top = pattern.partition(".")[0]
    if not {"*", "?"} & set(top) and top not in sys.modules and importlib.util.find_spec(top) is None:
        names = {name.partition(".")[0] for name in sys.modules} | {each.name for each in pkgutil.iter_modules()}
        return f"there is no module {top!r}{_near(top, names)}"
    imported = (name for name in sys.modules if name.count(".") == pattern.count("."))
    return f"no such module was imported{_near(pattern, set(imported) - {pattern})}"


def _near(name: str, names: set[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, sorted(names), 2, 0.8)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
