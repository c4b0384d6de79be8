"""Runs a script, a module or a string of code as ``__main__``, exactly as python would, with its code mended."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
import zipfile
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType

from .config import UNMENDABLE
from .hook.allowlist import PatternSet
from .hook.install import Hook

_OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SAFE_PATH = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


class CannotRun(Exception):
    """There is nothing to run; the message and `status` are those of plain python."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Program:
    """What to run: ``kind`` is "script", "module" or "code", ``target`` what python's command line would name."""

    kind: str
    target: str
    arguments: tuple[str, ...]

    @property
    def first_path(self) -> str:
        """What python would put first into `sys.path`."""
        if self.kind == "code":
            return ""
        if self.kind == "module":
            return os.getcwd()
        if _is_container(self.target):
            return self.target
        return "" if self.target == "-" else os.path.dirname(os.path.realpath(self.target))

    @property
    def home(self) -> str:
        """The directory whose modules are the program's own."""
        return os.path.abspath(self.first_path or os.getcwd())


def prepare(program: Program) -> None:
    """Set `sys.argv` and `sys.path` as python would, before anything of the program is looked up."""
    shown = {"code": "-c", "module": "-m"}.get(program.kind, program.target)
    sys.argv[:] = [shown, *program.arguments]
    if _is_container(program.target) and program.kind == "script":
        sys.path.insert(0, program.first_path)  # python puts this one first even under -I
    elif not _SAFE_PATH:
        sys.path.insert(0, program.first_path)


def run(program: Program, hook: Hook) -> None:
    """Run `program` to its end.  What it raises passes through, to be shown without a frame of ours.

    Raises CannotRun where python would not find it either.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=sys.modules["builtins"])
    try:
        code = _load(program, main, hook)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)
    except (SystemExit, CannotRun):
        raise
    except BaseException as error:
        _show_without_our_frames(error)
        raise


def _load(program: Program, main: ModuleType, hook: Hook) -> CodeType:
    if program.kind == "code":
        main.__dict__.update(__loader__=BuiltinImporter)
        return _mended(hook, program.target.encode(), "<string>")
    if program.kind == "module":
        return _load_module(program.target, main, hook)
    if program.target == "-":
        main.__dict__.update(__loader__=BuiltinImporter)
        return _mended(hook, sys.stdin.buffer.read(), "<stdin>")
    if _is_container(program.target):
        return _load_module("__main__", main, hook)
    return _load_script(program.target, main, hook)


def _load_script(target: str, main: ModuleType, hook: Hook) -> CodeType:
    path = os.path.abspath(target)
    try:
        with io.open_code(path) as stream:
            source = stream.read()
    except OSError as error:
        raise CannotRun(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", 2
        ) from None
    if source.startswith(importlib.util.MAGIC_NUMBER):
        compiled = SourcelessFileLoader("__main__", path)
        main.__dict__.update(__file__=path, __loader__=compiled, __cached__=None)
        code = compiled.get_code("__main__")
        assert code is not None
        return code
    main.__dict__.update(__file__=path, __loader__=SourceFileLoader("__main__", path), __cached__=None)
    return _mended(hook, source, path)


def _load_module(name: str, main: ModuleType, hook: Hook) -> CodeType:
    spec = _find_main(name)
    loader = spec.loader
    code = loader.get_code(spec.name) if loader is not None and hasattr(loader, "get_code") else None
    if code is None:
        raise CannotRun(f"{sys.executable}: No code object available for {spec.name}", 1)
    source = None
    if type(loader) is SourceFileLoader and spec.origin and spec.name.partition(".")[0] not in UNMENDABLE:
        source = loader.get_data(spec.origin)
        code = _mended(hook, source, spec.origin, code)
    sys.argv[0] = spec.origin if name != "__main__" and spec.origin else sys.argv[0]
    main.__dict__.update(
        __file__=spec.origin, __cached__=spec.cached, __loader__=loader, __package__=spec.parent, __spec__=spec
    )
    return code


def _find_main(name: str) -> ModuleSpec:
    """The spec of the module to run; of its ``__main__`` if it is a package.  Imports the parent packages."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        why = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        raise CannotRun(f"{sys.executable}: {why}", 1) from None
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        why = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        raise CannotRun(f"{sys.executable}: {why}", 1) from None
    if spec is None:
        raise CannotRun(f"{sys.executable}: No module named {name}", 1)
    if spec.submodule_search_locations is None:
        return spec
    if name.endswith("__main__"):
        raise CannotRun(f"{sys.executable}: Cannot use package as __main__ module", 1)
    try:
        return _find_main(f"{name}.__main__")
    except CannotRun as error:
        why = f"{error}; {name!r} is a package and cannot be directly executed"
        raise CannotRun(why, 1) from None


def _mended(hook: Hook, source: bytes, path: str, stock: CodeType | None = None) -> CodeType:
    """The program's own code: mended unless the settings deny ``__main__``."""
    denied = hook.settings.disable or PatternSet(hook.settings.deny).matches_name("__main__")
    code = None if denied else hook.mender.mend("__main__", path, source)
    if code is not None:
        return code
    return stock if stock is not None else compile(source, path, "exec", dont_inherit=True)


def _is_container(target: str) -> bool:
    """Does `target` name a directory or a zip file, which python runs by its ``__main__``?"""
    return os.path.isdir(target) or (os.path.isfile(target) and zipfile.is_zipfile(target))


def _show_without_our_frames(error: BaseException) -> None:
    """Let the interpreter report `error` itself, but hand its excepthook a traceback that starts in the program."""
    trimmed = error.__traceback__
    while trimmed is not None and trimmed.tb_frame.f_code.co_filename.startswith(_OWN_DIRECTORY):
        trimmed = trimmed.tb_next
    show = sys.excepthook

    def without_our_frames(kind: type[BaseException], value: BaseException, _whole: TracebackType | None) -> None:
        sys.last_traceback = trimmed  # type: ignore[assignment]
        show(kind, value.with_traceback(trimmed), trimmed)

    sys.excepthook = without_our_frames

