"""What to run, as the command line names it, and what python makes of `sys.argv` and `sys.path` for it."""

from __future__ import annotations

import os
import pkgutil
import sys
from dataclasses import dataclass

# Modules that read a program and run it themselves, and how the program is mended nevertheless.
LAUNCHERS = {
    "IPython": "%load_ext graphmend_hook in the session, which mends its cells",
    "cProfile": "python -m cProfile -m graphmend_hook PROGRAM",
    "coverage": "python -m coverage run -m graphmend_hook PROGRAM",
    "debugpy": "python -m debugpy --listen PORT -m graphmend_hook PROGRAM",
    "kernprof": "kernprof -m graphmend_hook PROGRAM",
    "pdb": "python -m pdb -m graphmend_hook PROGRAM",
    "profile": "python -m cProfile -m graphmend_hook PROGRAM",
    "pyinstrument": "pyinstrument -m graphmend_hook PROGRAM",
    "trace": "python -m trace OPTIONS --module graphmend_hook PROGRAM",
    "viztracer": "viztracer -m graphmend_hook PROGRAM",
}


class NotRunnableError(Exception):
    """There is nothing to run; the message and `status` are those of plain python."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Program:
    """What to run: ``kind`` is "script", "module" or "code", ``target`` what python's command line would name."""

    kind: str
    target: str
    arguments: tuple[str, ...]

    @property
    def path(self) -> str:
        """The script as python names it: absolute, but not normalized, save for the current directory itself."""
        if self.target in ("", ".") and sys.version_info >= (3, 11):
            return os.getcwd()
        return os.path.join(os.getcwd(), self.target)

    @property
    def is_stdin(self) -> bool:
        return self.kind == "script" and self.target == "-"

    @property
    def is_container(self) -> bool:
        """Is it a directory or a zip file, which python runs by its ``__main__``?"""
        return self.kind == "script" and not self.is_stdin and pkgutil.get_importer(self.path) is not None

    @property
    def first_path(self) -> str:
        """What python would put first into `sys.path`."""
        if self.kind == "code" or self.is_stdin:
            return ""
        if self.kind == "module":
            return os.getcwd()
        return self.path if self.is_container else os.path.dirname(os.path.realpath(self.path))

    @property
    def home(self) -> str:
        """The directory whose modules are the program's own."""
        return os.path.abspath(self.first_path)


def is_path_safe() -> bool:
    """Do the interpreter's flags (``-P``, ``-I``) keep the program's directory out of `sys.path`?"""
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def prepare(program: Program) -> None:
    """Set `sys.argv` and `sys.path` as python would, before anything of the program is looked up."""
    shown = {"code": "-c", "module": "-m"}.get(program.kind, program.target)
    sys.argv[:] = [shown, *program.arguments]
    if program.is_container or not is_path_safe():  # python finds __main__ in a container by sys.path, so even then
        sys.path.insert(0, program.first_path)
