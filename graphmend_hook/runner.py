"""Runs a script, a module or a string of code as ``__main__``, as python itself would, with its code mended.

What python does here is written in C (``Modules/main.c``, ``Python/pythonrun.c``) and in `runpy`; this module follows
both to the letter, because a program can see all of it: `sys.path`, `sys.argv`, its globals, messages and exit status.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import os
import pkgutil
import re
import runpy
import sys
from dataclasses import replace
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from zipimport import zipimporter

from .hook.allowlist import PatternSet
from .hook.install import Hook
from .hook.loader import MendingLoader
from .program import NotRunnableError, Program
from .settings.syntax import is_unmendable

_OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep


def run(program: Program, hook: Hook) -> None:
    """Run `program` to its end.  What it raises passes through, to be shown without a frame of ours.

    Raises NotRunnableError where python would not find it either.
    """
    main = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=sys.modules["builtins"])
    sys.modules["__main__"] = main
    try:
        if program.kind == "code":
            code = _load_code(program.target, main, hook)
        elif program.kind == "module" or program.is_container:
            code = _load_module(program, main, hook)
        else:
            code = _load_script(program, main, hook)
        exec(code, main.__dict__)
    except (SystemExit, NotRunnableError):
        raise
    except BaseException as error:
        _show_without_our_frames(error, program, main)
        raise
    _forget_file(program, main)


def _load_code(text: str, main: ModuleType, hook: Hook) -> CodeType:
    main.__dict__.update(__loader__=BuiltinImporter)
    text += "\n"
    code = compile(text, "<string>", "exec", dont_inherit=True)
    if sys.version_info >= (3, 13):  # from there on tracebacks show the lines of -c
        linecache.cache["<string>"] = (len(text), None, [line + "\n" for line in text.splitlines()], "<string>")
    if re.search(r"coding[:=]", text):  # python ignores a coding cookie here, and the rewriter would not
        return code
    return _mended(hook, "__main__", "<string>", text.encode(), code)


def _load_script(program: Program, main: ModuleType, hook: Hook) -> CodeType:
    path = "<stdin>" if program.is_stdin else program.path
    source = sys.stdin.buffer.read() if program.is_stdin else _read(path)
    main.__dict__.update(__file__=path, __cached__=None, __loader__=BuiltinImporter)
    if path.endswith(".pyc") or source.startswith(importlib.util.MAGIC_NUMBER):
        main.__dict__["__loader__"] = SourcelessFileLoader("__main__", path)
        return _code_of_pyc(source)
    if not program.is_stdin:
        main.__dict__["__loader__"] = SourceFileLoader("__main__", path)
    return _mended(hook, "__main__", path, source, compile(source, path, "exec", dont_inherit=True))


def _read(path: str) -> bytes:
    try:
        with io.open_code(path) as stream:
            return stream.read()
    except OSError as error:
        why = f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        raise NotRunnableError(f"{sys.orig_argv[0]}: {why}", 2) from None


def _code_of_pyc(data: bytes) -> CodeType:
    if not data.startswith(importlib.util.MAGIC_NUMBER):
        raise RuntimeError("Bad magic number in .pyc file")
    code = None
    with contextlib.suppress(EOFError, ValueError, TypeError):
        code = pkgutil.read_code(io.BytesIO(data))
    if not isinstance(code, CodeType):
        raise RuntimeError("Bad code object in .pyc file")
    return code


def _load_module(program: Program, main: ModuleType, hook: Hook) -> CodeType:
    try:
        if program.is_container:
            name, spec, code = runpy._get_main_module_details(NotRunnableError)  # type: ignore[attr-defined]
        else:
            name, spec, code = runpy._get_module_details(program.target, NotRunnableError)  # type: ignore[attr-defined]
    except NotRunnableError as error:
        raise NotRunnableError(f"{sys.executable}: {error}") from None
    if program.kind == "module":
        sys.argv[0] = spec.origin
    if isinstance(spec.loader, MendingLoader):
        code = _mended_as_imported(hook, name, spec, code)
    elif type(spec.loader) in (SourceFileLoader, zipimporter) and not is_unmendable(spec.name):
        code = _mended(hook, spec.name, spec.origin, spec.loader.get_data(spec.origin), code)
    main.__dict__.update(
        __file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __package__=spec.parent, __spec__=spec
    )
    return code  # type: ignore[no-any-return]


def _mended_as_imported(hook: Hook, name: str, spec: ModuleSpec, mended: CodeType) -> CodeType:
    """The code of a program that the hook has mended as the module `name`; its loader is then python's own."""
    assert isinstance(spec.loader, MendingLoader)
    spec.loader = SourceFileLoader(spec.loader.name, spec.loader.path)
    modules = hook.mender.ledger.modules
    record = modules[name] if name in sys.modules else modules.pop(name)  # the program's package may have imported it
    if PatternSet(hook.settings.deny).matches_name("__main__"):
        stock = spec.loader.get_code(name)
        assert stock is not None
        return stock
    modules["__main__"] = replace(record, name="__main__")
    return mended


def _mended(hook: Hook, name: str, path: str, source: bytes, code: CodeType) -> CodeType:
    """The mended form of the program's own `code`; `code` itself where it has none, or where it is denied.

    The stock code was compiled before, so every warning and error of the compiler has been shown by now.
    """
    deny = PatternSet(hook.settings.deny)
    if hook.settings.disable or deny.matches_name("__main__") or deny.matches_name(name) or deny.matches_file(path):
        return code
    mended, _cached = hook.mender.mend("__main__", path, source)
    return mended or code


def _forget_file(program: Program, main: ModuleType) -> None:
    """Python takes these two away after a script, before atexit handlers run (but not after SystemExit)."""
    if program.kind == "script" and not program.is_container:
        main.__dict__.pop("__file__", None)
        main.__dict__.pop("__cached__", None)


def _show_without_our_frames(error: BaseException, program: Program, main: ModuleType) -> None:
    """Let the interpreter report `error` itself, but by an excepthook that hides the frames below the program's.

    The error must reach the interpreter: only then does a KeyboardInterrupt end the process by its signal.
    """
    trimmed = error.__traceback__
    while trimmed is not None and trimmed.tb_frame.f_code.co_filename.startswith(_OWN_DIRECTORY):
        trimmed = trimmed.tb_next
    show = getattr(sys, "excepthook", sys.__excepthook__)

    def without_our_frames(kind: type[BaseException], value: BaseException, _whole: TracebackType | None) -> None:
        sys.excepthook = show
        sys.last_traceback = trimmed
        value.__traceback__ = trimmed
        try:
            show(kind, value, trimmed)
        except SystemExit:
            raise
        except BaseException as failure:
            _show_failure_of_excepthook(failure, value)
        finally:
            _forget_file(program, main)

    sys.excepthook = without_our_frames


def _show_failure_of_excepthook(failure: BaseException, value: BaseException) -> None:
    """What the interpreter prints if the program's own excepthook raises `failure` while it shows `value`."""
    ours = failure.__traceback__
    failure.__traceback__ = ours and ours.tb_next
    sys.stderr.write("Error in sys.excepthook:\n")
    sys.__excepthook__(type(failure), failure, failure.__traceback__)
    sys.stderr.write("\nOriginal exception was:\n")
    sys.__excepthook__(type(value), value, value.__traceback__)
