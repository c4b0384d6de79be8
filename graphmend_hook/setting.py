"""What the declaration of one setting says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from .parsing import Syntax, named

PREFIX = "GRAPHMEND_"


class Kind(Enum):
    """What a setting decides."""

    MODULES = "which modules are mended"
    REWRITING = "what rewritten code is; part of the cache key"
    TRACING = "what becomes of rewritten code when it is traced; one value for all hooks of a process"
    STORAGE = "where rewritten code is kept"
    PROCESS = "what the process does besides mending"


@dataclass(frozen=True, kw_only=True)
class Setting(Syntax):
    """The declaration of one field of `Settings`.

    name: the field, and the keyword of `graphmend_hook.install`.
    help: what it decides, in a line.
    """

    name: str
    kind: Kind
    help: str

    def keyword(self) -> str:
        return self.name

    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def option(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def take(self, value: object, said: str) -> Any:
        """What `read` makes of `value`; its ConfigError then names the setting as the user did, `said`."""
        with named(said):
            return self.read(value)

    def as_json(self, value: Any) -> Any:
        """`value` as a report has it."""
        return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value

    def show(self, value: Any) -> str:
        """`value`, or what `as_json` makes of it, for a person."""
        return (", ".join(value) or "none") if isinstance(value, (tuple, list)) else str(value)


# How a user names a setting: `Setting.variable`, `Setting.option` and `Setting.keyword` do.
Form = Callable[[Setting], str]


def about(kind: Kind, text: str, syntax: Syntax) -> dict[str, Any]:
    """What a field of `Settings` says of itself."""
    return {"kind": kind, "help": text, **vars(syntax)}
