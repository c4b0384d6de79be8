"""The names that rewritten code calls.  Until torch is there nothing is traced: only the two questions are asked.

A mended module may be imported before torch, or never meet it; so this package imports torch only in `connect`.
"""

from __future__ import annotations

import importlib
import sys

# By module: the functions that rewritten code calls while it is traced.
CALLED_BY_REWRITTEN_CODE = {
    "effects": ("tracing", "deferrable", "defer", "get_logger"),
    "conds": ("conditional",),
    "draws": ("drawable", "draw"),
    "select": ("select", "required"),
    "conditions": (
        *("compiling", "undecided", "negate", "both", "either", "every", "one_value", "early"),
        *("equal", "equal_method", "allclose", "allclose_method"),
    ),
    "numbers": ("number", "carried", "number_of", "number_read", "calculate", "count_selected", "compare"),
    "speculation": (
        *(
            "plain",
            "attribute",
            "unrelated",
            "current",
            "current_item",
            "attempt",
            "attempt_method",
            "operate",
            "augmented",
            "written",
        ),
        *("item_of", "slice"),
    ),
    "known": (
        *("item", "tolist", "known", "elements", "decide", "settle", "settled"),
        *("nonzero", "torch_nonzero", "places", "taken", "selected", "read", "positions", "total", "groupby"),
        *("distinct", "torch_distinct", "all_distinct"),
    ),
    "guards": ("asserted", "is_check"),
    "sweeps": ("sweep", "sweep_listed", "swept", "candidates", "candidate_rows", "chosen"),
    "masks": ("move",),
    "traced_sides": ("watch", "harmless"),
}
ABI = 10  # part of the cache key; raised when rewritten code calls something new here, or in another way
_DYNAMO = f"{__name__.rpartition('.')[0]}.dynamo"
connected = False


def tracing() -> bool:
    """Is Dynamo tracing the caller, for something else than export?  False until torch is imported."""
    return False


def compiling() -> bool:
    """Is the caller being traced, by Dynamo or for an export?  False until torch is imported."""
    return False


def connect() -> None:
    """Put the functions above in place, once torch is imported; before it traces, by the finder."""
    global connected
    if connected or "torch.compiler" not in sys.modules:
        return
    try:
        importlib.import_module(f"{_DYNAMO}.probes")
        modules = {name: importlib.import_module(f"{__name__}.{name}") for name in CALLED_BY_REWRITTEN_CODE}
    except (ImportError, AttributeError):  # torch is still being imported: the next call will do
        return
    connected = True
    for name, functions in CALLED_BY_REWRITTEN_CODE.items():
        globals().update({function: getattr(modules[name], function) for function in functions})


connect()
