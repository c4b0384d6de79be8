"""The names that rewritten code calls.  Until torch is there nothing is traced: only the two questions are asked.

A mended module may be imported before torch, or never meet it; so this package imports torch only in `connect`.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from types import ModuleType

# Where they are: each of these files says in `CALLED` which of its functions rewritten code calls.
TRACED = (
    *("effects.traced_defer", "effects.traced_draws", "effects.traced_late"),
    *("branches.traced_conditions", "branches.traced_speculated", "branches.traced_sides"),
    *("branches.traced_reductions", "branches.traced_select", "guards.traced_guards"),
    *("values.traced_value", "values.traced_data_shapes", "values.traced_numbers", "values.traced_operators"),
    *("values.traced_sweep", "values.traced_twice", "gradients.traced_grad"),
)
ABI = 28  # part of the cache key; raised when rewritten code calls something new here, or in another way
_PACKAGE = __name__.rpartition(".")[0]
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
        from ..dynamo.question import announce

        announced = announce()


def _put_in_place() -> None:
    global connected
    from ..dynamo import refusals
    from ..rules.codes import REFUSALS, TOLD

    try:
        importlib.import_module(f"{_PACKAGE}.dynamo.probes")
        halves = [importlib.import_module(f"{_PACKAGE}.rules.{name}") for name in TRACED]
    except (ImportError, AttributeError):  # torch is still being imported: the next call will do
        return
    connected = True
    refusals.sentences, refusals.told = REFUSALS, TOLD
    for half in halves:
        globals().update({name: getattr(half, name) for name in half.CALLED})


class _Runtime(ModuleType):
    """This module as a builtin, for mended functions under other globals than their module's.

    Dynamo takes every builtin for something that can be called.
    """

    def __call__(self) -> None:
        raise TypeError(f"{__name__} is not to be called")


sys.modules[__name__].__class__ = _Runtime
vars(builtins)["_@graphmend"] = sys.modules[__name__]  # `templates.RUNTIME`
connect()
