"""Settings: from arguments and ``GRAPHMEND_*`` variables, checked once, immutable afterwards."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from .diagnostics import ConfigError

RULE_NAMES = ("defer", "trap", "sweep", "where", "cond", "mask", "value")
GUARD_MODES = ("exact", "async", "keep")
COND_MODES = ("fullgraph", "always")
_OFF = {"", "0", "false", "no", "off"}
_ON = {"1", "true", "yes", "on"}
# Never mended: this package, what it is made of, and what decides whether code is being traced.
UNMENDABLE = frozenset({"graphmend_hook", "torch", "bytecode"}) | frozenset(sys.stdlib_module_names)
_SEGMENT = re.compile(r"[^\W\d]\w*|\w*[*?][\w*?]*")
_LIST_ITEM = re.compile(r'"((?:[^"]|"")+)"|([^,\s]+)')


@dataclass(frozen=True)
class Settings:
    """Everything that steers the hook.

    modules: allowlist; dotted names (a module and all below it), globs (``pkg.*.modeling_*``) or directories.
    deny: the same kinds of pattern, for modules that are left alone even if `modules` matches.
    rules: names of the rules that may rewrite.
    guards: what becomes of guards on tensors: "exact" raises their exception at the end of the graph, "async" makes
        them assertions of the graph that no host waits for, "keep" leaves them alone.
    cond: where the rule of that name applies: "fullgraph", where a graph break would be an error, or "always".
    values: names, or globs, of inputs whose values compiled code may be specialised on (``image_grid_thw``).
    cache_dir: where transformed bytecode is kept; None chooses a per-user directory.
    strict: "nothing was mended" and "imported too early" are errors.
    report: "" for none, "-" for a table on stderr at exit, else the path of a JSON file.
    log: level name for the ``graphmend_hook`` logger, "" to leave logging alone.
    disable: the kill switch; wins over everything else.
    """

    modules: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rules: tuple[str, ...] = RULE_NAMES
    guards: str = "exact"
    cond: str = "fullgraph"
    values: tuple[str, ...] = ()
    cache_dir: Path | None = None
    strict: bool = False
    report: str = ""
    log: str = ""
    disable: bool = False

    def __post_init__(self) -> None:
        for name in ("modules", "deny"):
            for pattern in getattr(self, name):
                check_pattern(pattern, f"GRAPHMEND_{name.upper()}")

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the ``GRAPHMEND_*`` variables of `env` (default: the process environment).

        Raises ConfigError that names the variable and says what it accepts; not if the kill switch is on, which must
        work whatever the others hold.
        """
        env = os.environ if env is None else env
        disable = parse_switch("GRAPHMEND_DISABLE", env)
        try:
            return cls._parse(env, disable)
        except ConfigError:
            if disable:
                return cls(disable=True)
            raise

    @classmethod
    def _parse(cls, env: Mapping[str, str], disable: bool) -> Settings:
        known = {f"GRAPHMEND_{field.name.upper()}" for field in fields(cls)}
        for name in env:
            if name.startswith("GRAPHMEND_") and name not in known:
                raise ConfigError(f"{name} is not a setting of graphmend_hook; it knows {', '.join(sorted(known))}")
        return cls(
            modules=split_list(env.get("GRAPHMEND_MODULES", "")),
            deny=split_list(env.get("GRAPHMEND_DENY", "")),
            rules=parse_rules(env.get("GRAPHMEND_RULES", "")),
            guards=parse_guards(env.get("GRAPHMEND_GUARDS", "")),
            cond=parse_cond(env.get("GRAPHMEND_COND", "")),
            values=split_list(env.get("GRAPHMEND_VALUES", "")),
            cache_dir=parse_directory("GRAPHMEND_CACHE_DIR", env),
            strict=parse_switch("GRAPHMEND_STRICT", env),
            report=parse_report(env.get("GRAPHMEND_REPORT", "")),
            log=parse_level(env.get("GRAPHMEND_LOG", "")),
            disable=disable,
        )

    def with_modules(self, modules: Iterable[str], deny: Iterable[str] = ()) -> Settings:
        return replace(self, modules=tuple(modules), deny=(*self.deny, *deny))

    def as_env(self) -> dict[str, str]:
        """The ``GRAPHMEND_*`` variables that give a child process these settings, whatever its current directory.

        A default is an empty string, not an absent key: the child must not see what this process was started with.
        """
        return {
            "GRAPHMEND_MODULES": join_list(map(_absolute, self.modules)),
            "GRAPHMEND_DENY": join_list(map(_absolute, self.deny)),
            "GRAPHMEND_RULES": ",".join(self.rules) or "none",
            "GRAPHMEND_GUARDS": self.guards,
            "GRAPHMEND_COND": self.cond,
            "GRAPHMEND_VALUES": join_list(self.values),
            "GRAPHMEND_CACHE_DIR": str(self.cache_dir.absolute()) if self.cache_dir else "",
            "GRAPHMEND_STRICT": "1" if self.strict else "",
            "GRAPHMEND_REPORT": self.report if self.report in {"", "-"} else os.path.abspath(self.report),
            "GRAPHMEND_LOG": self.log,
            "GRAPHMEND_DISABLE": "1" if self.disable else "",
        }


def is_directory_pattern(pattern: str) -> bool:
    """A pattern with a path separator names a directory, and with it every module whose file lies below it."""
    return os.sep in pattern or (os.altsep is not None and os.altsep in pattern) or pattern in {".", ".."}


def _absolute(pattern: str) -> str:
    return os.path.abspath(os.path.expanduser(pattern)) if is_directory_pattern(pattern) else pattern


def check_pattern(pattern: str, setting: str) -> None:
    """Raise ConfigError unless `pattern` is a dotted name, a dotted glob or a directory."""
    if is_directory_pattern(pattern):
        return
    for segment in pattern.split("."):
        if not _SEGMENT.fullmatch(segment) or keyword.iskeyword(segment):
            raise ConfigError(
                f"{setting}: {pattern!r} is not a module pattern; use a dotted name such as 'transformers', a glob "
                "such as 'transformers.models.*.modeling_*', or a directory such as './src'"
            )
    if setting.endswith("DENY"):
        return
    top = pattern.partition(".")[0]
    if top in UNMENDABLE:
        raise ConfigError(f"{setting}: {top!r} cannot be mended; name the libraries that run inside torch.compile")
    if not top.strip("*?"):
        raise ConfigError(f"{setting}: {pattern!r} would match every module; start it with a package name")


def split_list(text: str) -> tuple[str, ...]:
    """The items of `text`, parted by commas or white space; one that contains either stands in double quotes."""
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in _LIST_ITEM.findall(text))


def join_list(items: Iterable[str]) -> str:
    """The inverse of `split_list`."""
    return ",".join(
        '"' + item.replace('"', '""') + '"' if item.startswith('"') or re.search(r"[,\s]", item) else item
        for item in items
    )


def parse_rules(text: str) -> tuple[str, ...]:
    """``""`` and ``all`` mean every rule, ``defer`` only that one, ``-defer`` every rule but that one."""
    names = split_list(text)
    known = {"all", "none", *RULE_NAMES, *(f"-{name}" for name in RULE_NAMES)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(
            f"GRAPHMEND_RULES: there is no rule {unknown[0]!r}; use all, none, or names out of "
            f"{', '.join(RULE_NAMES)} (with a leading '-' to switch one off)"
        )
    wanted = {name for name in names if not name.startswith("-")}
    chosen = set() if "none" in wanted else set(RULE_NAMES) if not wanted or "all" in wanted else wanted
    return tuple(name for name in RULE_NAMES if name in chosen and f"-{name}" not in names)


def parse_guards(text: str) -> str:
    """``""`` means ``exact``; any other text than a mode is a ConfigError."""
    return _parse_mode("GRAPHMEND_GUARDS", text, GUARD_MODES, "a way to treat guards")


def parse_cond(text: str) -> str:
    """``""`` means ``fullgraph``; any other text than a mode is a ConfigError."""
    return _parse_mode("GRAPHMEND_COND", text, COND_MODES, "a place for torch.cond")


def _parse_mode(setting: str, text: str, modes: tuple[str, ...], what: str) -> str:
    mode = text.strip().lower() or modes[0]
    if mode in modes:
        return mode
    raise ConfigError(f"{setting}: {text!r} is not {what}; use {', '.join(modes)}")


def parse_directory(name: str, env: Mapping[str, str]) -> Path | None:
    text = env.get(name, "")
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError as error:  # ``~`` or ``~name`` of a user without a home directory
        raise ConfigError(f"{name}: {text!r}: {error}; use an absolute path") from None


def parse_switch(name: str, env: Mapping[str, str]) -> bool:
    value = env.get(name, "").strip().lower()
    if value in _OFF:
        return False
    if value in _ON:
        return True
    raise ConfigError(f"{name}: {env[name]!r} is neither on nor off; use 1 or 0")


def parse_report(text: str) -> str:
    lowered = text.strip().lower()
    return "" if lowered in _OFF else "-" if lowered in _ON | {"-"} else text


def parse_level(text: str) -> str:
    """A level name of `logging` in upper case, or "" to leave logging alone; other text is a ConfigError."""
    level = text.strip().upper()
    if level in {"", "DEBUG", "INFO", "WARNING", "ERROR"}:
        return level
    raise ConfigError(f"GRAPHMEND_LOG: {text!r} is not a level; use debug, info, warning or error")
