"""The names that rewritten code calls.  Until torch is there nothing is traced, and only `tracing` is called.

A mended module may be imported before torch, or never meet it; so this package imports torch only in `connect`.
"""

from __future__ import annotations

import sys
from typing import Any

CALLED_BY_REWRITTEN_CODE = ("tracing", "deferrable", "defer", "get_logger")
ABI = 1  # part of the cache key; raised when rewritten code calls something new here, or in another way
connected = False


def tracing() -> bool:
    """Is Dynamo tracing the caller, for something else than export?  False until torch is imported."""
    return False


def deferrable(target: object, method: str, values: tuple[Any, ...]) -> bool:
    """May the effect ``target.method(*values)`` wait for the end of the graph?  See `runtime.effects.deferrable`."""
    return False


def defer(delivery: Any, target: Any, values: tuple[Any, ...]) -> None:
    """Hand an effect to the epilogue.  See `runtime.effects.defer`."""
    delivery(target, values)


def get_logger(function: Any, *args: Any) -> Any:
    """``function(*args)``, for `logging.getLogger`.  See `runtime.effects.get_logger`."""
    return function(*args)


def connect() -> None:
    """Put the real functions in place of the ones above, once torch is imported; before it traces, by the finder."""
    global connected
    if connected or "torch.compiler" not in sys.modules:
        return
    try:
        from . import effects
    except (ImportError, AttributeError):  # torch is still being imported: the next call will do
        return
    connected = True
    globals().update({name: getattr(effects, name) for name in CALLED_BY_REWRITTEN_CODE})


connect()
