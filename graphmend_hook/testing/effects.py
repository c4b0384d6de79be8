"""Records what a call does beside what it returns: log records, warnings and prints, in one sequence."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any

from ..explain.observe import name_of

# What the compiler itself says is no effect of the program.
_COMPILER = ("torch", "graphmend_hook")
Effect = tuple[object, ...]


@contextlib.contextmanager
def recorded() -> Iterator[list[Effect]]:
    """Collects the effects of the block, of every logger that is enabled; handlers see the records as well.

    Records of "once" methods (`logging.Logger.warning_once` of transformers) are recorded again in each block.
    """
    import torch

    effects: list[Effect] = []
    make_record = logging.getLogRecordFactory()
    compilers = tuple(os.path.join(os.path.dirname(path), "") for path in (torch.__file__, os.path.dirname(__file__)))

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make_record(*args, **kwargs)
        if made.name.partition(".")[0] not in _COMPILER:
            place = f"{made.pathname}:{made.lineno} in {name_of(made.funcName or '?')}"
            effects.append(("log", made.levelname, made.getMessage(), place))
        return made

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        if not filename.startswith(compilers):
            effects.append(("warning", category.__name__, str(message), f"{filename}:{lineno}"))

    for method in vars(logging.Logger).values():
        if hasattr(method, "cache_clear"):
            method.cache_clear()
    logging.setLogRecordFactory(torch.compiler.disable(record))
    try:
        with contextlib.redirect_stdout(_Stream(effects)), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = torch.compiler.disable(show)
            yield effects
    finally:
        logging.setLogRecordFactory(make_record)


class _Stream(io.TextIOBase):
    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects

    def write(self, text: str) -> int:
        self._effects.append(("print", text))
        return len(text)
