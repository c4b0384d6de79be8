"""The options of what runs a program: which are ours, what the program is, and the settings that follow."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from .config import Settings, parse_cond, parse_guards, parse_level, parse_report, parse_rules, split_list
from .diagnostics import ConfigError
from .program import Program
from .version import __version__

_FLAGS = ("strict", "disable")
_USAGE = "%(prog)s [options] (script.py | -m module | -c code | -) [arguments ...]"


def run_parser(prog: str) -> argparse.ArgumentParser:
    """The parser of the options that stand before a program that is run."""
    parser = argparse.ArgumentParser(
        prog,
        usage=_USAGE,
        allow_abbrev=False,
        description="Run a program as python would, with its libraries mended for torch.compile.",
        epilog="Options of the program's own go after it.  Each option has a GRAPHMEND_* variable of the same name.",
    )
    add_settings(parser)
    parser.add_argument(
        "--report", metavar="PATH", nargs="?", const="-", help="report at exit (stderr, or JSON to PATH)"
    )
    parser.add_argument("--log", metavar="LEVEL", help="show the tool's own messages: debug, info, warning, error")
    parser.add_argument("--strict", action="store_true", help="fail if nothing was mended")
    parser.add_argument("--disable", action="store_true", help="mend nothing: run the program as it is")
    parser.add_argument("--no-children", action="store_true", help="do not switch the hook on in child processes")
    parser.add_argument("--version", action="version", version=f"graphmend_hook {__version__}")
    return parser


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The options that say what is mended, and how."""
    parser.add_argument(
        "--modules", metavar="LIST", help="modules to mend (default: transformers and the program's own modules)"
    )
    parser.add_argument("--deny", metavar="LIST", help="modules to leave alone; __main__ is the program itself")
    parser.add_argument("--rules", metavar="LIST", help="rules to apply: all, none, NAME, -NAME")
    parser.add_argument("--guards", metavar="MODE", help="guards on tensors: exact (default), async, keep")
    parser.add_argument("--cond", metavar="MODE", help="torch.cond for branches: fullgraph (default), always")
    parser.add_argument("--values", metavar="LIST", help="inputs on whose values compiled code may be specialised")
    parser.add_argument("--cache-dir", metavar="DIR", help="where transformed bytecode is kept")


def split(parser: argparse.ArgumentParser, argv: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and from the first word that is none of them on, the program with its own.

    ``--report`` takes its path only as ``--report=PATH``: ``--report train.py`` names a program.
    """
    takes_value = {word for action in parser._actions if action.nargs is None for word in action.option_strings}
    own, rest = [], list(argv)
    while rest and (rest[0] == "-h" or rest[0].startswith("--")) and rest[0] != "--":
        option = rest.pop(0)
        if option in takes_value and rest:
            option = f"{option}={rest.pop(0)}"  # as one word, or argparse takes a value such as -defer for an option
        own.append(option)
    return own, rest


def program_of(parser: argparse.ArgumentParser, rest: list[str]) -> Program:
    """The program that the words after our options name; leaves through the parser's error if there is none."""
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if not rest:
        parser.error("there is no program to run; name a script, or use -m MODULE or -c CODE")
    word, arguments = rest[0], rest[1:]
    for flag, kind in (("-m", "module"), ("-c", "code")):
        if word.startswith(flag):
            target = [word[2:]] if len(word) > 2 else arguments[:1]
            if not target:
                parser.error(f"argument expected for the {flag} option")
            return Program(kind, target[0], tuple(arguments if len(word) > 2 else arguments[1:]))
    if word.startswith("-") and word != "-":
        parser.error(f"unknown option {word}; python's options go before -m, the program's own after the program")
    return Program("script", word, tuple(arguments))


_PARSERS: dict[str, Callable[[str], Any]] = {
    "modules": split_list,
    "deny": split_list,
    "rules": parse_rules,
    "guards": parse_guards,
    "cond": parse_cond,
    "values": split_list,
    "cache_dir": lambda text: Path(text).expanduser().absolute(),
    "report": parse_report,
    "log": parse_level,
}


def settings_of(options: argparse.Namespace, program: Program | None = None) -> Settings:
    """The settings of the environment, with what the command line says instead; directories become absolute.

    Where neither names modules, those of the program are mended too.
    """
    settings = Settings.from_env()
    words = {name: getattr(options, name, None) for name in _PARSERS}
    given: dict[str, Any] = {name: True for name in _FLAGS if getattr(options, name, False)}
    if program is not None and not settings.modules:
        given["modules"] = ("transformers", program.home)
    try:
        given |= {name: _PARSERS[name](text) for name, text in words.items() if text is not None}
        return replace(settings, **given)
    except ConfigError as error:
        raise ConfigError(re.sub(r"GRAPHMEND_(\w+):", _as_option, str(error))) from None


def _as_option(variable: re.Match[str]) -> str:
    return f"--{variable[1].lower().replace('_', '-')}:"
