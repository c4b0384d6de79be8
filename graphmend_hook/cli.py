"""The command line: ``python -m graphmend_hook`` and ``graphmend run`` run a program, ``graphmend demo`` shows one."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import commands, runner
from .config import Settings, parse_guards, parse_level, parse_report, parse_rules, split_list
from .diagnostics import ConfigError, GraphmendError, StrictError
from .hook.install import install_settings
from .program import NotRunnableError, Program, is_path_safe, prepare
from .reporting.exit import nothing_was_mended
from .version import __version__

_USAGE = "%(prog)s [options] (script.py | -m module | -c code | -) [arguments ...]"
_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")


def run_main(argv: Sequence[str] | None = None, prog: str = "python -m graphmend_hook") -> int:
    """Run a program with its libraries mended.  Returns the exit status; what the program raises passes through."""
    parser = _run_parser(prog)
    own, rest = _split(list(sys.argv[1:] if argv is None else argv))
    options = parser.parse_args(own)
    program = _program(parser, rest)
    try:
        settings = _settings(options, program)
        hook = install_settings(settings)
    except (ConfigError, StrictError) as error:
        print(f"{prog}: error: {error}", file=sys.stderr)
        return 2
    _export(settings, children=not options.no_children)
    prepare(program)
    try:
        runner.run(program, hook)
    except NotRunnableError as error:
        print(error, file=sys.stderr)
        return error.status
    except SystemExit as end:
        if not (_is_success(end) and _failed_strictly(settings)):
            raise
    return 1 if _failed_strictly(settings) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """The console script ``graphmend``: `run` (see `run_main`) and the commands of `commands`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["run"]:
        if not is_path_safe():
            del sys.path[:1]  # the directory of the console script; the program gets an entry of its own
        return run_main(arguments[1:], "graphmend run")
    parser = argparse.ArgumentParser("graphmend", description="Frees PyTorch libraries of graph breaks.")
    parser.add_argument("--version", action="version", version=f"graphmend_hook {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    subparsers.add_parser("run", help="run a program with its libraries mended")
    for name in commands.NAMES:
        module = importlib.import_module(f".commands.{name}", __package__)
        command = subparsers.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except GraphmendError as error:
        print(f"graphmend {options.command}: error: {error}", file=sys.stderr)
        return 2
    return status


def _run_parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog,
        usage=_USAGE,
        allow_abbrev=False,
        description="Run a program as python would, with its libraries mended for torch.compile.",
        epilog="Options of the program's own go after it.  Each option has a GRAPHMEND_* variable of the same name.",
    )
    parser.add_argument(
        "--modules", metavar="LIST", help="modules to mend (default: transformers and the program's own modules)"
    )
    parser.add_argument("--deny", metavar="LIST", help="modules to leave alone; __main__ is the program itself")
    parser.add_argument("--rules", metavar="LIST", help="rules to apply: all, none, NAME, -NAME")
    parser.add_argument("--guards", metavar="MODE", help="guards on tensors: exact (default), async, keep")
    parser.add_argument("--cache-dir", metavar="DIR", help="where transformed bytecode is kept")
    parser.add_argument(
        "--report", metavar="PATH", nargs="?", const="-", help="report at exit (stderr, or JSON to PATH)"
    )
    parser.add_argument("--log", metavar="LEVEL", help="show the tool's own messages: debug, info, warning, error")
    parser.add_argument("--strict", action="store_true", help="fail if nothing was mended")
    parser.add_argument("--disable", action="store_true", help="mend nothing: run the program as it is")
    parser.add_argument("--no-children", action="store_true", help="do not switch the hook on in child processes")
    parser.add_argument("--version", action="version", version=f"graphmend_hook {__version__}")
    return parser


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and from the first word that is none of them on, the program with its own.

    ``--report`` takes its path only as ``--report=PATH``: ``--report train.py`` names a program.
    """
    takes_value = {"--modules", "--deny", "--rules", "--guards", "--cache-dir", "--log"}
    own, rest = [], list(argv)
    while rest and (rest[0] == "-h" or rest[0].startswith("--")) and rest[0] != "--":
        option = rest.pop(0)
        if option in takes_value and rest:
            option = f"{option}={rest.pop(0)}"  # as one word, or argparse takes a value such as -defer for an option
        own.append(option)
    return own, rest


def _program(parser: argparse.ArgumentParser, rest: list[str]) -> Program:
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


def _settings(options: argparse.Namespace, program: Program) -> Settings:
    """The settings of the environment, with what the command line says instead; directories become absolute."""
    settings = Settings.from_env()
    try:
        return replace(settings, **_given(options, settings, program))
    except ConfigError as error:
        raise ConfigError(re.sub(r"GRAPHMEND_(\w+):", _as_option, str(error))) from None


def _given(options: argparse.Namespace, settings: Settings, program: Program) -> dict[str, Any]:
    """The fields of Settings that the command line decides."""
    given: dict[str, Any] = {}
    if options.modules is not None:
        given["modules"] = split_list(options.modules)
    elif not settings.modules:
        given["modules"] = ("transformers", program.home)
    if options.deny is not None:
        given["deny"] = split_list(options.deny)
    if options.rules is not None:
        given["rules"] = parse_rules(options.rules)
    if options.guards is not None:
        given["guards"] = parse_guards(options.guards)
    if options.cache_dir is not None:
        given["cache_dir"] = Path(options.cache_dir).expanduser().absolute()
    if options.report is not None:
        given["report"] = parse_report(options.report)
    if options.log is not None:
        given["log"] = parse_level(options.log)
    return given | {name: True for name in ("strict", "disable") if getattr(options, name)}


def _as_option(variable: re.Match[str]) -> str:
    return f"--{variable[1].lower().replace('_', '-')}:"


def _is_success(end: SystemExit) -> bool:
    return end.code is None or (isinstance(end.code, int) and end.code == 0)


def _failed_strictly(settings: Settings) -> bool:
    return settings.strict and not settings.disable and nothing_was_mended()


def _export(settings: Settings, children: bool) -> None:
    """Put the settings into the environment of child processes, and our sitecustomize first into their path.

    Without `children`, nothing in the environment switches the hook on in them.
    """
    if not children:
        os.environ.pop("GRAPHMEND_MODULES", None)
        return
    os.environ.update(settings.as_env())
    path = os.environ.get("PYTHONPATH")  # an empty entry means the current directory, so none may be lost or added
    others = [entry for entry in path.split(os.pathsep) if entry != _BOOTSTRAP] if path else []
    os.environ["PYTHONPATH"] = os.pathsep.join([_BOOTSTRAP, *others])
