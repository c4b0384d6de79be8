"""The settings: each declared once, as a field of `Settings`.

From the declarations come the ``GRAPHMEND_*`` variables, the options of the commands and of the pytest plugin, the
arguments of `graphmend_hook.install`, what child processes inherit, and what reports show.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from . import parsing
from .diagnostics import ConfigError
from .setting import PREFIX, Form, Kind, Setting, about

# In the order in which they are tried at a statement (`rules.order`).
RULE_NAMES = ("defer", "trap", "sweep", "where", "cond", "value")
GUARD_MODES = ("exact", "async", "keep")
COND_MODES = ("fullgraph", "always")


@dataclass(frozen=True)
class Settings:
    """Everything that steers a hook, checked and immutable."""

    modules: tuple[str, ...] = field(
        default=(),
        metadata=about(Kind.MODULES, "modules to mend", parsing.read_mendable, parsing.write_patterns, metavar="LIST"),
    )
    deny: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Kind.MODULES,
            "modules to leave alone all the same",
            parsing.read_patterns,
            parsing.write_patterns,
            metavar="LIST",
        ),
    )
    rules: tuple[str, ...] = field(
        default=RULE_NAMES,
        metadata=about(
            Kind.REWRITING,
            "rules to apply: all, none, NAME, -NAME",
            parsing.choice_of_rules(RULE_NAMES),
            parsing.write_rules,
            metavar="LIST",
        ),
    )
    guards: str = field(
        default=GUARD_MODES[0],
        metadata=about(
            Kind.TRACING,
            "guards on tensors: exact (default), async, keep",
            parsing.one_of(GUARD_MODES, "a way to treat guards"),
            metavar="MODE",
        ),
    )
    cond: str = field(
        default=COND_MODES[0],
        metadata=about(
            Kind.TRACING,
            "torch.cond for branches: fullgraph (default), always",
            parsing.one_of(COND_MODES, "a place for torch.cond"),
            metavar="MODE",
        ),
    )
    values: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Kind.TRACING,
            "inputs on whose values compiled code may be specialised",
            parsing.read_list,
            parsing.join_list,
            metavar="LIST",
        ),
    )
    cache_dir: Path | None = field(
        default=None,
        metadata=about(
            Kind.STORAGE,
            "where transformed bytecode is kept",
            parsing.read_directory,
            parsing.write_directory,
            metavar="DIR",
        ),
    )
    strict: bool = field(
        default=False,
        metadata=about(
            Kind.PROCESS,
            "fail if nothing was mended, or a module was imported too early",
            parsing.read_switch,
            parsing.write_switch,
            bare="1",
        ),
    )
    report: str = field(
        default="",
        metadata=about(
            Kind.PROCESS,
            "report at exit (stderr, or JSON to PATH)",
            parsing.read_report,
            parsing.write_report,
            metavar="PATH",
            bare="-",
        ),
    )
    log: str = field(
        default="",
        metadata=about(
            Kind.PROCESS,
            "show the tool's own messages: debug, info, warning, error",
            parsing.read_level,
            metavar="LEVEL",
        ),
    )
    disable: bool = field(
        default=False,
        metadata=about(
            Kind.PROCESS, "mend nothing; wins over everything else", parsing.read_switch, parsing.write_switch, bare="1"
        ),
    )

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the ``GRAPHMEND_*`` variables of `env` (default: the process environment).

        Raises ConfigError that names the variable and says what it accepts; not if the kill switch is on, which must
        work whatever the others hold.
        """
        env = os.environ if env is None else env
        texts = {setting.name: env.get(setting.variable(), "") for setting in SETTINGS}
        off = cls().with_given({"disable": texts["disable"]}, Setting.variable)
        try:
            _check_names(env)
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
        words = [(setting, given.get(setting.name)) for setting in SETTINGS]
        return replace(
            self, **{setting.name: setting.take(word, form(setting)) for setting, word in words if word is not None}
        )

    def with_arguments(self, given: Mapping[str, object], form: Form) -> Settings:
        """As `with_given`, but what these settings deny stays denied, and what they disable stays disabled."""
        made = self.with_given(given, form)
        return replace(made, deny=tuple(dict.fromkeys((*self.deny, *made.deny))), disable=self.disable or made.disable)

    def as_json(self) -> dict[str, Any]:
        return {setting.name: setting.as_json(getattr(self, setting.name)) for setting in SETTINGS}


SETTINGS = tuple(Setting(declared.name, **declared.metadata) for declared in fields(Settings))


def changed(settings: Mapping[str, Any], *kinds: Kind) -> list[str]:
    """What is no default of `settings`, in the form of `Settings.as_json`, and of `kinds`: "guards async"."""
    default = Settings().as_json()
    found = ((each, settings.get(each.name, default[each.name])) for each in settings_of_kind(*kinds))
    return [f"{setting.name} {setting.show(value)}" for setting, value in found if value != default[setting.name]]


def settings_of_kind(*kinds: Kind) -> tuple[Setting, ...]:
    return tuple(setting for setting in SETTINGS if setting.kind in kinds)


def _check_names(env: Mapping[str, str]) -> None:
    known = {setting.variable() for setting in SETTINGS}
    for name in env:
        if name.startswith(PREFIX) and name not in known:
            raise ConfigError(f"{name} is not a setting of graphmend_hook; it knows {', '.join(sorted(known))}")
