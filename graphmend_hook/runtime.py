"""The module that rewritten code calls.  Until torch is there nothing is traced: only the two questions are asked.

The other names that rewritten code may call stand in `called`.
A mended module may be imported before torch, or never meet it; so this package imports torch only in `connect`.
"""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

ABI = 48  # part of the cache key; raised when rewritten code calls something new here, or in another way
connected = False  # are the functions below in place?
announced = False  # and has Dynamo been told of them?


def tracing() -> bool:
    """Is Dynamo tracing the caller, for something else than export?  False until torch is imported."""
    return False


def compiling() -> bool:
    """Is the caller being traced, by Dynamo or for an export?  False until torch is imported."""
    return False


def connect() -> None:
    """Put the functions above in place once torch is imported, and tell Dynamo once that is; called by the finder."""
    global announced
    if not connected and "torch.compiler" in sys.modules:
        _put_in_place()
    if connected and not announced:
        from .engine.door.question import announce

        announced = announce()


def _put_in_place() -> None:
    global connected
    from .engine.attempt import refusals
    from .rules.codes import TOLD

    try:
        from . import called
        from .engine.door import probes  # noqa: F401  they prove that what is called works
    except (ImportError, AttributeError):  # torch is still being imported: the next call will do
        return
    connected = True
    refusals.told = TOLD
    globals().update({name: value for name, value in vars(called).items() if not name.startswith("_")})


class _Runtime(ModuleType):
    """This module as a builtin, for mended functions under other globals than their module's.

    Dynamo takes every builtin for something that can be called.
    """

    def __call__(self) -> None:
        raise TypeError(f"{__name__} is not to be called")


sys.modules[__name__].__class__ = _Runtime
vars(builtins)["_@graphmend"] = sys.modules[__name__]  # `templates.RUNTIME`
connect()
