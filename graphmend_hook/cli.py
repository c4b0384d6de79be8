"""The command line: ``python -m graphmend_hook`` and ``graphmend run`` run a program, ``graphmend demo`` shows one."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

from . import runner
from .diagnostics import ConfigError, GraphmendError, StrictError, notice
from .hook.allowlist import Allowlist
from .hook.install import install_settings
from .hook.reach import children
from .hook.reach.relaunch import RELAUNCHED
from .hook.unmatched import tell_at_exit
from .product import commands
from .product.report import status
from .product.report.exit import failed_strictly
from .program import LAUNCHERS, NotRunnableError, Program, is_path_safe, prepare
from .settings.config import Setting, Settings
from .settings.options import given, program_of, run_parser, settings_of, split
from .settings.syntax import is_unmendable
from .version import __version__

log = logging.getLogger("graphmend_hook")


def module_main() -> int:
    """``python -m graphmend_hook``: a command, as of ``graphmend``, or a program to run; ``./explain`` is a program."""
    return main() if sys.argv[1:2] and sys.argv[1] in ("run", *commands.NAMES) else run_main()


def run_main(argv: Sequence[str] | None = None, prog: str = "python -m graphmend_hook") -> int:
    """Run a program with its libraries mended.  Returns the exit status; what the program raises passes through."""
    status.leave_to_runner()
    parser = run_parser(prog)
    own, rest = split(parser, list(sys.argv[1:] if argv is None else argv))
    options = parser.parse_args(own)
    program = program_of(parser, rest)
    try:
        settings = settings_of(options, program)
        hook = install_settings(settings, Setting.option)
        if given(options).get("modules") or Settings.from_env().modules:
            tell_at_exit(hook)
    except (ConfigError, StrictError) as error:
        print(f"{prog}: error: {error}", file=sys.stderr)
        return 2
    if program.kind == "module" and program.target in LAUNCHERS and not settings.disable:
        log.warning("%s", notice("GM015", launcher=program.target, instead=LAUNCHERS[program.target]))
    prepare(program)
    os.environ.pop(RELAUNCHED, None)
    if options.no_children:
        children.switch_off()
    else:
        children.switch_on(_with_program(settings, program))
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
    try:
        try:
            return _command(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough; what is still to be flushed at exit goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _command(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("graphmend", description="Frees PyTorch libraries of graph breaks.")
    parser.add_argument("--version", action="version", version=f"graphmend_hook {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = run_parser("graphmend run", add_help=False)
    subparsers.add_parser("run", help="run a program with its libraries mended", parents=[run])
    for name in commands.NAMES:
        module = importlib.import_module(f".product.commands.{name}", __package__)
        command = subparsers.add_parser(name, help=module.HELP, description=_description(module))
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow
        with contextlib.suppress(ImportError):
            importlib.import_module("argcomplete").autocomplete(parser)
    program: list[str] = []
    if arguments and arguments[0] in commands.BEFORE_A_PROGRAM:
        arguments[1:], program = split(subparsers.choices[arguments[0]], arguments[1:])
    near = difflib.get_close_matches(arguments[0], subparsers.choices, 1) if arguments else []
    if near and arguments[0] not in subparsers.choices:
        parser.error(f"there is no command {arguments[0]!r}; did you mean {near[0]!r}?")
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


def _with_program(settings: Settings, program: Program) -> Settings:
    """`settings` for child processes, which may run the program themselves, as those of `multiprocessing` do."""
    allowlist = Allowlist(settings.modules)
    if program.kind == "module":
        own, is_known = program.target, is_unmendable(program.target) or allowlist.may_cover(program.target, None)
    else:
        own, is_known = program.path, allowlist.covers("__main__", program.path)
    if program.kind == "code" or program.is_stdin or program.is_container or is_known:
        return settings
    return replace(settings, modules=(*settings.modules, own))
