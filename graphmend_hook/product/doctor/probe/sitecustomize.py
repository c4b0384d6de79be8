"""Watches the imports of the program that ``graphmend doctor`` looks at, then runs the sitecustomize it hides.

It imports nothing of graphmend_hook: that would switch the hook on, and the question is whether the program does.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from types import FrameType
from typing import Any


class _Watcher:
    """A finder that finds nothing, and remembers who asked first for each module."""

    importers: dict[str, tuple[str, int, str] | None] = {}  # by name: file, line and function

    @classmethod
    def find_spec(cls, fullname: str, _path: Any = None, _target: Any = None) -> None:
        if fullname not in cls.importers:
            cls.importers[fullname] = _importer(fullname.partition(".")[0])


def _importer(top: str) -> tuple[str, int, str] | None:
    """The nearest caller that belongs neither to the import system nor to the package `top`, nor to graphmend_hook."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name, file = frame.f_globals.get("__name__") or "", frame.f_code.co_filename
        if name.partition(".")[0] not in (top, "importlib", "graphmend_hook") and not file.startswith("<frozen "):
            return (file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _start() -> str:
    """Take back what brought python here, so that the program and its children see the environment as it was."""
    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    order = json.loads(os.environ.pop("_GRAPHMEND_PROBE"))
    if order["path"] is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = order["path"]
    sys.meta_path.insert(0, _Watcher)
    return str(order["out"])


def _run_hidden() -> None:
    """Import the sitecustomize that this one hides, if there is one; what it raises is for `site` to show."""
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise
        sys.modules[__name__] = own  # the import system wants to find a module of this name at the end


def _finders() -> list[str]:
    return [
        finder.__name__ if isinstance(finder, type) else type(finder).__name__
        for finder in sys.meta_path
        if finder is not _Watcher
    ]


def _write(out: str, pid: int, early: list[str]) -> None:
    """Write what was seen and the hook's report, if it had one; the program's exit functions have run by now."""
    if os.getpid() != pid:
        return
    ledger = sys.modules.get("graphmend_hook.product.report.ledger")
    modules = {}
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        modules[name] = [type(getattr(spec, "loader", None)).__name__, getattr(spec, "origin", None)]
    seen = {
        "at_start": early,
        "finders": _finders(),
        "importers": _Watcher.importers,
        "modules": modules,
        "report": ledger.as_json(ledger.ledger) if ledger and ledger.ledger.hooks else None,
    }
    with open(out, "w") as stream:
        json.dump(seen, stream, default=str)


_out = _start()
_early: list[str] = []
atexit.register(_write, _out, os.getpid(), _early)
try:
    _run_hidden()
finally:
    _early.extend(_finders())
