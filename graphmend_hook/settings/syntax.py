"""What the value of a setting may be: read from text or from a Python object, and written for a child process.

A function that reads raises ConfigError with what is wrong and what to do about it. How the user names the setting
(variable, option or keyword) stands in front of that, and only the caller knows it.
"""

from __future__ import annotations

import contextlib
import keyword
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnostics import ConfigError

# In the order in which they are tried at a statement (`rules.order`).
RULE_NAMES = ("defer", "trap", "sweep", "where", "value", "grad")
GUARD_MODES = ("exact", "async", "keep")
FILLED_IN = ("pid", "rank", "host")  # in braces, in the path of a report
# Never mended: this package, what it is made of, and what decides whether code is being traced.
UNMENDABLE = frozenset({"graphmend_hook", "torch", "bytecode"}) | frozenset(sys.stdlib_module_names)
_OFF = {"", "0", "false", "no", "off"}
_ON = {"1", "true", "yes", "on"}
_SEGMENT = re.compile(r"[^\W\d]\w*|(?:[^\W\d]\w*)?[*?][\w*?]*")
_LIST_ITEM = re.compile(r'"((?:[^"]|"")+)"|([^,\s]+)')


def write(value: Any) -> str:
    """A text for a value of any setting that means the same in every directory."""
    if isinstance(value, tuple):
        return join_list(value)
    if isinstance(value, Path):
        return str(value.absolute())
    return "" if value in (None, False) else "1" if value is True else str(value)


@dataclass(frozen=True)
class Syntax:
    """How the values of a setting are given.

    read: the value, of a text or of what Python code gives; raises ConfigError.
    write: a text of which `read` makes the same value, whatever the current directory.
    metavar: what the help of an option calls its value; "" for an option without one.
    bare: the text that the option means where no value follows it; "" where one has to.
    """

    read: Callable[[object], Any]
    write: Callable[[Any], str] = write
    metavar: str = ""
    bare: str = ""


@contextlib.contextmanager
def named(said: str) -> Iterator[None]:
    """ConfigErrors of the block begin with `said`, the name of what the user gave."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{said}: {error}") from None


def is_directory_pattern(pattern: str) -> bool:
    """A pattern with a path separator names a directory, and with it every module whose file lies below it."""
    return os.sep in pattern or (os.altsep is not None and os.altsep in pattern) or pattern in {".", ".."}


def check_pattern(pattern: str) -> None:
    """Raise ConfigError unless `pattern` is a dotted name, a dotted glob or a directory."""
    if is_directory_pattern(pattern):
        return
    for segment in pattern.split("."):
        if not _SEGMENT.fullmatch(segment) or keyword.iskeyword(segment):
            raise ConfigError(
                f"{pattern!r} is not a module pattern; use a dotted name such as 'transformers', a glob "
                "such as 'transformers.models.*.modeling_*', or a directory such as './src'"
            )


def is_unmendable(module: str) -> bool:
    return module.partition(".")[0] in UNMENDABLE


def check_mendable(pattern: str) -> None:
    """Raise ConfigError unless `pattern` is a module pattern, of modules that may be mended."""
    check_pattern(pattern)
    top = pattern.partition(".")[0]
    if is_directory_pattern(pattern):
        return
    if is_unmendable(pattern):
        raise ConfigError(f"{top!r} cannot be mended; name the libraries that run inside torch.compile")
    if not top.strip("*?"):
        raise ConfigError(f"{pattern!r} would match every module; start it with a package name")


def split_list(text: str) -> tuple[str, ...]:
    """The items of `text`, parted by commas or white space; one that contains either stands in double quotes."""
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in _LIST_ITEM.findall(text))


def join_list(items: Iterable[str]) -> str:
    """The inverse of `split_list`."""
    return ",".join(
        '"' + item.replace('"', '""') + '"' if item.startswith('"') or re.search(r"[,\s]", item) else item
        for item in items
    )


def read_list(value: object) -> tuple[str, ...]:
    """The items of a text, as `split_list` has them, or of an iterable of texts."""
    if isinstance(value, str):
        return split_list(value)
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{value!r} is not a list of names; use a text such as 'a,b', or a list of texts")
    return items


def read_patterns(value: object, check: Callable[[str], None] = check_pattern) -> tuple[str, ...]:
    """Patterns of modules, each of which `check` accepts."""
    found = read_list(value)
    for pattern in found:
        check(pattern)
    return found


def write_patterns(patterns: Iterable[str]) -> str:
    """A list in which directories are absolute."""
    return join_list(
        os.path.abspath(os.path.expanduser(pattern)) if is_directory_pattern(pattern) else pattern
        for pattern in patterns
    )


def read_rules(value: object) -> tuple[str, ...]:
    """A choice of the rules: ``""`` and ``all`` mean every rule, ``-defer`` every rule but that one.

    A list without items means no rule.
    """
    names = read_list(value)
    if not names and not isinstance(value, str):
        return ()
    for name in names:
        if name not in {"all", "none", *RULE_NAMES, *(f"-{rule}" for rule in RULE_NAMES)}:
            import difflib

            near = difflib.get_close_matches(name.lstrip("-").lower(), RULE_NAMES, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                f"there is no rule {name!r}; {meant}use all, none, or names out of {', '.join(RULE_NAMES)} "
                "(with a leading '-' to switch one off)"
            )
    wanted = {name for name in names if not name.startswith("-")}
    chosen = set() if "none" in wanted else set(RULE_NAMES) if not wanted or "all" in wanted else wanted
    return tuple(name for name in RULE_NAMES if name in chosen and f"-{name}" not in names)


def read_guards(value: object) -> str:
    """One of `GUARD_MODES`, in any case; ``""`` means the first."""
    mode = value.strip().lower() or GUARD_MODES[0] if isinstance(value, str) else ""
    if mode not in GUARD_MODES:
        raise ConfigError(f"{value!r} is not a way to treat guards; use {', '.join(GUARD_MODES)}")
    return mode


def read_directory(value: object) -> Path | None:
    """An absolute path; ``""`` is None."""
    if not isinstance(value, (str, os.PathLike)):
        raise ConfigError(f"{value!r} is not a path; use a text or a pathlib.Path")
    try:
        return Path(value).expanduser().absolute() if os.fspath(value) else None
    # ``~`` of a user without a home directory, a byte that no path can have, a current directory that is gone
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigError(f"{value!r}: {error}; use an absolute path") from None


def read_switch(value: object) -> bool:
    word = value.strip().lower() if isinstance(value, str) else str(value).lower()
    if word not in _ON | _OFF:
        raise ConfigError(f"{value!r} is neither on nor off; use 1 or 0")
    return word in _ON


def read_report(value: object) -> str:
    """``""`` for no report, ``"-"`` for one on stderr, else a path."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise ConfigError(f"{value!r} is not a path; use a text, or '-' for a report on stderr")
    text = str(value)
    for name in re.findall(r"\{(\w*)\}", text):
        if name not in FILLED_IN:
            raise ConfigError(f"{{{name}}} is not filled in; use {', '.join(f'{{{known}}}' for known in FILLED_IN)}")
    word = text.strip().lower()
    return "" if word in _OFF else "-" if word in _ON | {"-"} else text


def write_report(report: str) -> str:
    return report if report in {"", "-"} else os.path.abspath(report)


def read_level(value: object) -> str:
    """The name of a level of `logging` in upper case; ``""`` leaves logging alone."""
    level = value.strip().upper() if isinstance(value, str) else None
    if level not in {"", "DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ConfigError(f"{value!r} is not a level; use debug, info, warning or error")
    return level or ""


MENDABLE_MODULES = Syntax(lambda value: read_patterns(value, check_mendable), write_patterns, "LIST")
ANY_MODULES = Syntax(read_patterns, write_patterns, "LIST")
RULES = Syntax(read_rules, lambda names: ",".join(names) or "none", "LIST")
GUARDS = Syntax(read_guards, metavar="MODE")
NAMES = Syntax(read_list, metavar="LIST")
DIRECTORY = Syntax(read_directory, metavar="DIR")
SWITCH = Syntax(read_switch, bare="1")
REPORT = Syntax(read_report, write_report, "PATH", "-")
LEVEL = Syntax(read_level, metavar="LEVEL")
