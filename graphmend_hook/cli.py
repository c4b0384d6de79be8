"""The command line: ``python -m graphmend_hook`` and ``graphmend run`` run a program, ``graphmend demo`` shows one."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from . import commands, runner
from .config import Setting, Settings
from .diagnostics import ConfigError, GraphmendError, StrictError
from .hook.install import install_settings
from .options import program_of, run_parser, settings_of, split
from .program import NotRunnableError, is_path_safe, prepare
from .reporting.exit import failed_strictly
from .version import __version__

_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")


def run_main(argv: Sequence[str] | None = None, prog: str = "python -m graphmend_hook") -> int:
    """Run a program with its libraries mended.  Returns the exit status; what the program raises passes through."""
    parser = run_parser(prog)
    own, rest = split(parser, list(sys.argv[1:] if argv is None else argv))
    options = parser.parse_args(own)
    program = program_of(parser, rest)
    try:
        settings = settings_of(options, program)
        hook = install_settings(settings, Setting.option)
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
        if end.code not in (None, 0) or not failed_strictly(settings):
            raise
    return 1 if failed_strictly(settings) else 0


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
        command = subparsers.add_parser(name, help=module.HELP, description=_description(module))
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    program: list[str] = []
    if arguments and arguments[0] in commands.BEFORE_A_PROGRAM:
        arguments[1:], program = split(subparsers.choices[arguments[0]], arguments[1:])
    options = parser.parse_args(arguments)
    options.program = program
    try:
        return int(options.run(options))
    except GraphmendError as error:
        print(f"graphmend {options.command}: error: {error}", file=sys.stderr)
        return 2


def _description(command: ModuleType) -> str | None:
    """What its docstring says of a command, without the usage in front; None under ``python -OO``."""
    text = (command.__doc__ or "").rpartition("``: ")[2].replace("``", "`")
    return text[:1].upper() + text[1:] or None


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
