"""Switching the hook on in child processes: by their environment, and a sitecustomize of ours first in their path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..config import Settings

BOOTSTRAP = str(Path(__file__).parent.parent / "bootstrap")
_PATH = "PYTHONPATH"
_CHILD = "_GRAPHMEND_CHILD"


def switch_on(settings: Settings) -> Callable[[], None]:
    """Let the children of this process have a hook for `settings`; gives what takes that back.

    What was in the environment stands there again afterwards, but for what others have changed since.
    """
    path = os.environ.get(_PATH)  # an empty entry means the current directory, so none may be lost or added
    others = [entry for entry in path.split(os.pathsep) if entry != BOOTSTRAP] if path else []
    given = {**settings.as_env(), _CHILD: _given_by() or str(os.getpid()), _PATH: os.pathsep.join([BOOTSTRAP, *others])}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)

    def take_back() -> None:
        for name, value in before.items():
            if os.environ.get(name) == given[name]:
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    return take_back


def is_child() -> bool:
    """Has this process its settings from one that has switched the hook on in its children?"""
    return _given_by() not in ("", str(os.getpid()))


def _given_by() -> str:
    return os.environ.get(_CHILD, "")


def switch_off() -> None:
    """Let nothing in the environment switch a hook on in the children of this process."""
    os.environ.pop("GRAPHMEND_MODULES", None)
