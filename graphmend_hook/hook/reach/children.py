"""Switching the hook on in child processes: by their environment, and a sitecustomize of ours first in their path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...settings.config import Settings

BOOTSTRAP = Path(__file__).parents[2] / "bootstrap"
_PATH = "PYTHONPATH"
_CHILD = "_GRAPHMEND_CHILD"
_wanted: list[Settings] = []  # by the hooks that have children; the last one counts
_before: dict[str, str | None] = {}  # what stood in the environment before the first of them
_written: dict[str, str] = {}  # what we have put there


def switch_on(settings: Settings) -> Callable[[], None]:
    """Let the children of this process have a hook for `settings`; gives what takes that back.

    What was in the environment stands there again once all are taken back, but for what others have changed since.
    """
    _wanted.append(settings)
    _follow()
    return lambda: _forget(settings)


def _forget(settings: Settings) -> None:
    _wanted.remove(settings)
    _follow()


def _follow() -> None:
    for name, value in _before.items():
        if os.environ.get(name) == _written.get(name):
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    _before.clear()
    _written.clear()
    if _wanted:
        path = os.environ.get(_PATH)  # an empty entry means the current directory, so none may be lost or added
        others = [entry for entry in path.split(os.pathsep) if entry != str(BOOTSTRAP)] if path else []
        whose = _given_by() or str(os.getpid())
        _written.update({**_wanted[-1].as_env(), _CHILD: whose, _PATH: os.pathsep.join([str(BOOTSTRAP), *others])})
        _before.update({name: os.environ.get(name) for name in _written})
        os.environ.update(_written)


def is_child() -> bool:
    """Has this process its settings from one that has switched the hook on in its children?"""
    return _given_by() not in ("", str(os.getpid()))


def _given_by() -> str:
    return os.environ.get(_CHILD, "")


def switch_off() -> None:
    """Let nothing in the environment switch a hook on in the children of this process."""
    os.environ.pop("GRAPHMEND_MODULES", None)
