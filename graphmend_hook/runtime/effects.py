"""What [Defer] calls while Dynamo traces: may this effect wait, and if so, with which values?

Dynamo inlines these functions and folds their tests; in eager only `tracing` runs.
"""

from __future__ import annotations

import enum
import logging
import warnings
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from . import dynamo, queue

_LOGGERS = (logging.Logger, logging.LoggerAdapter)
_ONCE = ("debug_once", "info_once", "warning_once", "error_once")  # methods without effect at a second call
# Immutable, or with a text that never changes; bool is an int, torch.Size a tuple.
_STABLE = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, type, enum.Enum)

REFUSALS = {
    "GM101-T01": "the call is not print, warnings.warn or a method of a logger",
    "GM101-T02": "an argument is a tensor whose text shows its autograd state, or a subclass of Tensor",
    "GM101-T03": "an argument is a tensor inside vmap, grad or another function transform",
    "GM101-T04": "an argument is an object whose text may change before the effect is delivered",
    "GM101-T05": "the call stands in a context manager that may redirect it",
    "GM101-T06": "the call stands in the body of a higher-order operator that forbids side effects",
    "GM101-T07": "a warnings filter turns warnings into errors, which must be raised where they arise",
    "GM101-T08": "activation checkpointing would make the call again in backward; only fullgraph=True leaves that out",
    "GM101-T09": "this torch generates code whose epilogue is not understood (GM005)",
}

try:
    from torch.compiler import is_exporting
except ImportError:  # torch < 2.7

    def is_exporting() -> bool:
        return False


def tracing() -> bool:
    """Is Dynamo tracing the caller?  Not for export: an exported program has no epilogue."""
    return is_dynamo_compiling() and not is_exporting()


def deferrable(target: object, method: str, values: tuple[Any, ...]) -> bool:
    """May the effect wait for the end of the graph?  Every reason why not is recorded with its code.

    target: the receiver of the call, or the function itself where `method` is "".
    values: the leaf values of its arguments, as of the call.
    """
    if not tracing():  # a graph break among the arguments: from there on the call runs for real
        return False
    refusal = _refusal(target, method, values)
    if refusal:
        dynamo.record(refusal)
        return False
    return True


def defer(delivery: Callable[[Any, Any], Any], target: Any, values: tuple[Any, ...]) -> None:
    """Leave the effect for the epilogue, with a copy of every value that could change until then."""
    item = (delivery, target, tuple([_kept(value) for value in values]))
    if dynamo.in_a_body():
        dynamo.in_any_body(queue.graphmend_pending.append, item)
    else:
        queue.graphmend_pending.append(item)


def get_logger(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, looked up while tracing if it is `logging.getLogger`, which Dynamo cannot trace."""
    if function is logging.getLogger:
        return dynamo.get_logger(*args)
    return function(*args)


def _refusal(target: object, method: str, values: tuple[Any, ...]) -> str:
    if not queue.understood:
        return "GM101-T09"
    if not _is_effect(target, method):
        return "GM101-T01"
    refusal = dynamo.standing(method == "" and target is warnings.warn, method not in _ONCE)
    if refusal:
        return refusal
    return _unstable_item(values)


def _is_effect(target: object, method: str) -> bool:
    # The type goes first: Dynamo can tell it of more objects than it can compare.
    if method:
        return isinstance(target, _LOGGERS)
    return isinstance(target, (FunctionType, BuiltinFunctionType)) and (
        target is print
        or target is warnings.warn
        or target is logging.debug
        or target is logging.info
        or target is logging.warning
        or target is logging.error
        or target is logging.critical
        or target is logging.log
    )


def _unstable(value: object) -> str:
    """The code of the refusal if the text of `value` may differ at the end of the graph, else ""."""
    if isinstance(value, torch.Tensor):
        if type(value) is not torch.Tensor or value.requires_grad:
            return "GM101-T02"
        return dynamo.tensor_standing()
    if isinstance(value, _STABLE):
        return ""
    if type(value) is tuple or type(value) is list:
        return _unstable_item(value)
    if type(value) is torch.Size:
        return ""
    if type(value) is dict:
        return _unstable_item(value.values())
    return "GM101-T04"


def _unstable_item(values: Iterable[object]) -> str:
    for value in values:
        refusal = _unstable(value)
        if refusal:
            return refusal
    return ""


def _kept(value: Any) -> Any:
    """`value` as it is now: what can be written to in place is copied, inside the graph where it is a tensor."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value) is tuple:
        return tuple([_kept(item) for item in value])
    if type(value) is list:
        return [_kept(item) for item in value]
    if type(value) is dict:
        return {key: _kept(item) for key, item in value.items()}
    return value
