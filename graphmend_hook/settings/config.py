"""The settings: each declared once, as a field of `Settings`.

From the declarations come the ``GRAPHMEND_*`` variables, the options of the commands and of the pytest plugin, the
arguments of `graphmend_hook.install`, what child processes inherit, and what reports show.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

from ..diagnostics import ConfigError, notice
from . import syntax
from .syntax import GUARD_MODES, RULE_NAMES

PREFIX = "GRAPHMEND_"
log = logging.getLogger("graphmend_hook")


class Kind(Enum):
    """What a setting decides."""

    MODULES = "which modules are mended"
    REWRITING = "what rewritten code is; part of the cache key"
    TRACING = "what becomes of rewritten code when it is traced; one value for all hooks of a process"
    STORAGE = "where rewritten code is kept"
    PROCESS = "what the process does besides mending"


@dataclass(frozen=True, kw_only=True)
class Setting(syntax.Syntax):
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

    def as_json(self, value: Any) -> Any:
        """`value` as a report has it."""
        return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value

    def show(self, value: Any) -> str:
        """`value`, or what `as_json` makes of it, for a person."""
        return (", ".join(value) or "none") if isinstance(value, (tuple, list)) else str(value)


# How a user names a setting: `Setting.variable`, `Setting.option` and `Setting.keyword` do.
Form = Callable[[Setting], str]


def declared(default: Any, kind: Kind, text: str, form: syntax.Syntax) -> Any:
    """A field of `Settings`, with what it says of itself."""
    return field(default=default, metadata={"kind": kind, "help": text, **vars(form)})


@dataclass(frozen=True)
class Settings:
    """Everything that steers a hook, checked and immutable."""

    modules: tuple[str, ...] = declared((), Kind.MODULES, "modules to mend", syntax.MENDABLE_MODULES)
    deny: tuple[str, ...] = declared((), Kind.MODULES, "modules to leave alone all the same", syntax.ANY_MODULES)
    rules: tuple[str, ...] = declared(
        RULE_NAMES, Kind.REWRITING, "rules to apply: all, none, NAME, -NAME", syntax.RULES
    )
    guards: str = declared(
        GUARD_MODES[0], Kind.TRACING, "guards on tensors: exact (default), async, keep", syntax.GUARDS
    )
    values: tuple[str, ...] = declared(
        (), Kind.TRACING, "inputs on whose values compiled code may be specialised", syntax.NAMES
    )
    cache_dir: Path | None = declared(  # noqa: RUF009  it is a field
        None, Kind.STORAGE, "where transformed bytecode is kept", syntax.DIRECTORY
    )
    strict: bool = declared(
        False, Kind.PROCESS, "fail if nothing was mended, or a module was imported too early", syntax.SWITCH
    )
    report: str = declared("", Kind.PROCESS, "report at exit (stderr, or JSON to PATH)", syntax.REPORT)
    log: str = declared("", Kind.PROCESS, "show the tool's own messages: debug, info, warning, error", syntax.LEVEL)
    late: bool = declared(False, Kind.PROCESS, "mend what was imported before, too", syntax.SWITCH)
    disable: bool = declared(False, Kind.PROCESS, "mend nothing; wins over everything else", syntax.SWITCH)

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the ``GRAPHMEND_*`` variables of `env` (default: the process environment, if it can be trusted).

        Raises ConfigError that names the variable and says what it accepts; not if the kill switch is on, which must
        work whatever the others hold.
        """
        env = _environment() if env is None else env
        variables = {setting.variable(): setting.name for setting in SETTINGS}
        texts = {name: env.get(variable, "") for variable, name in variables.items()}
        off = cls().with_given({"disable": texts["disable"]}, Setting.variable)
        try:
            check_names(env)
            return cls().with_given(texts, Setting.variable)
        except ConfigError:
            if off.disable:
                return off
            raise

    def as_env(self) -> dict[str, str]:
        """The ``GRAPHMEND_*`` variables that give a child process these settings, whatever its current directory.

        A default is a text too, not an absent key: the child must not see what this process was started with.
        """
        return {setting.variable(): setting.write(getattr(self, setting.name)) for setting in SETTINGS}

    def with_given(self, given: Mapping[str, object], form: Form) -> Settings:
        """These settings, but for those in `given`, by name; None there is as if it were missing.

        Raises ConfigError that names the setting by `form` and says what it accepts.
        """
        made = {}
        for setting in SETTINGS:
            value = given.get(setting.name)
            if value is not None:
                with syntax.named(form(setting)):
                    made[setting.name] = setting.read(value)
        return replace(self, **made)

    def as_json(self) -> dict[str, Any]:
        return {setting.name: setting.as_json(getattr(self, setting.name)) for setting in SETTINGS}


def check_names(env: Mapping[str, str]) -> None:
    """Raise ConfigError for a ``GRAPHMEND_*`` variable that there is not."""
    known = sorted(setting.variable() for setting in SETTINGS)
    for name in env:
        if name.startswith(PREFIX) and name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1, 0.8)
            help_ = f"did you mean {near[0]}?" if near else f"it knows {', '.join(known)}"
            raise ConfigError(f"{name} is not a setting of graphmend_hook; {help_}")


def _environment() -> Mapping[str, str]:
    """The process environment; none where the process has rights that whoever made the environment may not have."""
    if not hasattr(os, "geteuid") or (os.geteuid(), os.getegid()) == (os.getuid(), os.getgid()):
        return os.environ
    if any(name.startswith(PREFIX) for name in os.environ):
        log.warning("%s", notice("GM013"))
    return {}


SETTINGS = tuple(Setting(name=each.name, **each.metadata) for each in fields(Settings))


def changed(settings: Mapping[str, Any], *kinds: Kind) -> list[str]:
    """What is no default of `settings`, in the form of `Settings.as_json`, and of `kinds`: "guards async"."""
    default = Settings().as_json()
    found = ((each, settings.get(each.name, default[each.name])) for each in settings_of_kind(*kinds))
    return [f"{setting.name} {setting.show(value)}" for setting, value in found if value != default[setting.name]]


def settings_of_kind(*kinds: Kind) -> tuple[Setting, ...]:
    return tuple(setting for setting in SETTINGS if setting.kind in kinds)
