"""What is loaded by its place, past `sys.meta_path`: specs that are made for a file, and scripts that `runpy` runs.

transformers' remote code, ``torch.hub`` and plugin systems ask `importlib.util.spec_from_file_location` for a spec and
run its loader; a spawned process of `multiprocessing` runs the script of its parent by `runpy.run_path`.  While a hook
is installed both go through this file.  What they give is theirs but for the loader, or the code, of a plain source
file that a hook covers; a function that was imported by its name before the hook was installed is not reached.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from ...diagnostics import say_failed
from ..loader import MendingFinder


def _mending(spec: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """`spec` with a loader that mends, if a hook covers the module, and the caller has brought no loader."""
    if isinstance(spec, ModuleSpec):
        for finder in _finders():
            if finder.adopt(spec.name, spec, brought=options.get("loader") is not None) is not None:
                break
    return spec


def _mended(result: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """What `runpy` made of a script, with mended code if a hook covers it.

    result: the code, before Python 3.12 in a pair with the path, which is the last argument.
    """
    code, path = result if isinstance(result, tuple) else (result, [*arguments, *options.values()][-1])
    for finder in _finders():
        mended = finder.mended_script(os.fsdecode(path)) if isinstance(code, CodeType) else None
        if mended is not None:
            return (mended, path) if isinstance(result, tuple) else mended
    return result


def _finders() -> Iterator[MendingFinder]:
    return (finder for finder in list(sys.meta_path) if isinstance(finder, MendingFinder))


class _Wrapper:
    """One function of a module, and what takes its place while a hook is installed.

    then: called with what the function gave, and with the arguments that it was called with.
    """

    def __init__(self, owner: ModuleType, name: str, then: Callable[..., Any]) -> None:
        self._owner, self._name = owner, name
        self._stock: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(self._stock)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = self._stock(*args, **kwargs)
            try:
                return then(given, args, kwargs)
            except Exception as error:
                say_failed("the import hook", f"in {self._name}", error)
                return given

        self._wrapped = wrapped

    def follow(self, installed: bool) -> None:
        """Be in place or not.  Where somebody else has wrapped the wrapper it stays, and changes nothing."""
        before, after = (self._stock, self._wrapped) if installed else (self._wrapped, self._stock)
        if getattr(self._owner, self._name) is before:
            setattr(self._owner, self._name, after)


@functools.cache
def _wrappers() -> list[_Wrapper]:
    return [
        _Wrapper(importlib.util, "spec_from_file_location", _mending),
        _Wrapper(runpy, "_get_code_from_file", _mended),
    ]


def follow(installed: bool) -> None:
    """Put the wrappers in place, or take them away.  installed: is a hook?"""
    for wrapper in _wrappers():
        wrapper.follow(installed)
