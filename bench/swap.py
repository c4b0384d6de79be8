"""The code that the hook gave to functions, and what they would have without it, in one process.

Two processes put their threads and memory where they happen to, which moves a forward pass by more than what is to be
measured.  Here both arms run the same model, with the same weights at the same addresses.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType

from graphmend_hook.hook.loader import MendingLoader


class Swap:
    """All functions whose code the hook has changed, of the modules that are imported."""

    def __init__(self) -> None:
        stock = dict(_stock_codes())
        found = [item for item in gc.get_objects() if type(item) is FunctionType and _key(item.__code__) in stock]
        self._codes = [
            (function, {"off": stock[_key(function.__code__)], "on": function.__code__})
            for function in found
            if function.__code__.co_freevars == stock[_key(function.__code__)].co_freevars
            and _names(function.__code__) != _names(stock[_key(function.__code__)])
        ]

    def called_by(self, run: Callable[[], object]) -> int:
        """How many calls of these functions one call of `run` makes."""
        mended = {id(codes["on"]) for _, codes in self._codes}
        calls = 0

        def count(frame: FrameType, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call" and id(frame.f_code) in mended

        sys.setprofile(count)
        try:
            run()
        finally:
            sys.setprofile(None)
        return calls

    def to(self, arm: str) -> None:
        """Give every function the code of that arm: "off" or "on"."""
        for function, codes in self._codes:
            function.__code__ = codes[arm]


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _stock_codes() -> Iterator[tuple[tuple[str, str, int], CodeType]]:
    for module in list(sys.modules.values()):
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        if isinstance(loader, MendingLoader):
            path = loader.get_filename()
            for code in _within(compile(loader.get_data(path), path, "exec", dont_inherit=True)):
                yield _key(code), code


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)


def _names(code: CodeType) -> list[tuple[str, ...]]:
    """What tells mended code: it calls the runtime, itself or in a function that is defined in it."""
    return [each.co_names for each in _within(code)]
