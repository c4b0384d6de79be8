"""The options of what runs a program: which are ours, what the program is, and the settings that follow."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..program import Program
from ..version import __version__
from .config import SETTINGS, Kind, Setting, Settings, settings_of_kind

# The settings of mending itself, which every command takes that runs programs or mends modules.
OF_MENDING = settings_of_kind(Kind.MODULES, Kind.REWRITING, Kind.TRACING, Kind.STORAGE)
# Mended where nobody says otherwise, beside the program's own modules: the library, and what it loads from hubs.
DEFAULT = ("transformers", "transformers_modules")
# By setting: what its help says besides where a program is run.
FOR_A_PROGRAM = {
    "modules": f" (default: {', '.join(DEFAULT)} and the program's own modules)",
    "deny": "; __main__ is the program itself",
}


def run_parser(prog: str, add_help: bool = True) -> argparse.ArgumentParser:
    """The parser of the options that stand before a program that is run."""
    parser = argparse.ArgumentParser(
        prog,
        usage="%(prog)s [options] (script.py | -m module | -c code | -) [arguments ...]",
        allow_abbrev=False,
        add_help=add_help,
        description="Run a program as python would, with its libraries mended for torch.compile.",
        epilog="Options of the program's own go after it.  Each option has a GRAPHMEND_* variable of the same name.",
    )
    add_settings(parser, SETTINGS, FOR_A_PROGRAM)
    parser.add_argument("--no-children", action="store_true", help="do not switch the hook on in child processes")
    parser.add_argument("--version", action="version", version=f"graphmend_hook {__version__}")
    return parser


def add_settings(
    parser: argparse.ArgumentParser, settings: Iterable[Setting], more: Mapping[str, str] | None = None
) -> None:
    """An option for each of `settings`. more: by the name of one, what its help says besides."""
    for setting in settings:
        text = setting.help + (more or {}).get(setting.name, "")
        if setting.metavar:
            count, word = ("?", setting.bare) if setting.bare else (None, None)
            parser.add_argument(setting.option(), metavar=setting.metavar, nargs=count, const=word, help=text)
        else:
            parser.add_argument(setting.option(), action="store_const", const=setting.bare, help=text)


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
    return own, rest[1:] if rest[:1] == ["--"] else rest


def program_of(parser: argparse.ArgumentParser, rest: list[str]) -> Program:
    """The program that the words after our options name; leaves through the parser's error if there is none."""
    if not rest:
        parser.error("there is no program to run; name a script, or use -m MODULE or -c CODE")
    word, arguments = rest[0], rest[1:]
    kind = {"-m": "module", "-c": "code"}.get(word[:2])
    if kind:
        words = [word[2:], *arguments] if len(word) > 2 else arguments
        if not words:
            parser.error(f"argument expected for the {word} option")
        return Program(kind, words[0], tuple(words[1:]))
    if word.startswith("-") and word != "-":
        parser.error(f"unknown option {word}; python's options go before -m, the program's own after the program")
    return Program("script", word, tuple(arguments))


def given(options: argparse.Namespace) -> dict[str, str]:
    """The settings that the command line names, as texts."""
    words = {setting.name: getattr(options, setting.name, None) for setting in SETTINGS}
    return {name: word for name, word in words.items() if word is not None}


def settings_of(options: argparse.Namespace, program: Program | None = None) -> Settings:
    """The settings of the environment, with what the command line says instead.

    Where neither names modules, those of the program are mended too.
    """
    settings = Settings.from_env()
    if program is not None and not settings.modules:
        settings = replace(settings, modules=(*DEFAULT, program.home))
    return settings.with_given(given(options), Setting.option)


def passed_on(options: argparse.Namespace) -> dict[str, str]:
    """The settings that the command line names, as variables for a process that is started for this command.

    Raises ConfigError for one that cannot be used.
    """
    words = given(options)
    settings = Settings().with_given(words, Setting.option)
    return {each.variable(): each.write(getattr(settings, each.name)) for each in SETTINGS if each.name in words}
