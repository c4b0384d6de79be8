"""Sides outside of Dynamo's traces, as in a non-strict export: what they do is judged before it is done.

Nobody could take back there what a side has stored.  So an operation of torch is made only if it can fail on no data,
and code of the program, or a method that may change what it belongs to, is not run at all.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...engine.door.own_code import with_inner
from ...source import tensor_ops
from ..where.codes import HARMFUL, MAY_FAIL
from .traced_operations import can_fail
from .traced_sides import Unspeculable

# Attributes; and what is asked where the sides of a branch in a side are merged.
_ASKED = ("__get__", "stride")
_OF_TORCH = frozenset({"torch", "graphmend_hook"})
_READING = frozenset(
    [
        "abs",
        "bool",
        "callable",
        "count",
        "endswith",
        "float",
        "format",
        "get",
        "getattr",
        "hasattr",
        "index",
        "int",
        "isinstance",
        "items",
        "join",
        "keys",
        "len",
        "lower",
        "max",
        "min",
        "range",
        "round",
        "startswith",
        "str",
        "tuple",
        "type",
        "upper",
        "values",
    ]
)


@contextlib.contextmanager
def watched(side: Callable[..., Any], effects: list[Any]) -> Iterator[None]:
    """While it is on, what the function would do raises `Unspeculable`, unless it only computes, and cannot fail.

    effects: where it may leave its own.
    """
    own, before = {*with_inner(side.__code__)}, sys.getprofile()

    def see(frame: FrameType, event: str, called: Any) -> None:
        caller = frame.f_back if event == "call" else frame
        if caller is None or caller.f_code not in own:
            return
        if event == "call" and not (frame.f_code in own or _is_of_torch(frame.f_globals.get("__name__"))):
            raise Unspeculable(HARMFUL)
        if event == "c_call" and getattr(called, "__self__", None) is not effects and not _only_reads(called):
            raise Unspeculable(HARMFUL)

    sys.setprofile(see)
    try:
        with _Watching():
            yield
    finally:
        sys.setprofile(before)


class _Watching(TorchFunctionMode):  # type: ignore[misc]
    """Sees each operation of torch."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = getattr(function, "__name__", ""), kwargs or {}
        plain = tensor_ops.of_operator(name)
        if plain == "div" and "rounding_mode" not in options:
            plain = "true_divide"
        if name not in _ASKED and (plain not in tensor_ops.SPECULABLE or can_fail(plain, args, options)):
            raise Unspeculable(MAY_FAIL, name)
        return function(*args, **options)


def _is_of_torch(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _OF_TORCH


def _only_reads(function: Any) -> bool:
    """Is it a function of torch, which `_Watching` sees, or one that changes nothing of what it is given?"""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.Tensor) or _is_of_torch(getattr(function, "__module__", "")):
        return True
    is_of_torch = _is_of_torch(getattr(type(owner), "__module__", "")) or _is_of_torch(getattr(owner, "__module__", ""))
    return is_of_torch or function.__name__ in _READING
