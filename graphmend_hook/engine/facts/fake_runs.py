"""What a function of torch that is written in Python does: it is run on tensors without data, and watched."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map

from ..door.tracer import log
from .schemas import NOTHING, UNKNOWN, Facts, of_call

_MOST = 4096  # of what is remembered
_seen: dict[Any, Facts] = {}  # by function, and by what of its arguments may decide


def of_function(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Facts:
    """What the call does; its arguments are values, fake tensors among them.  Nothing is known where it fails."""
    operands: dict[int | str, Any] = dict(enumerate(args)) | dict(options)
    key = (function, *[(name, _form(operand)) for name, operand in operands.items()])
    if key not in _seen:
        facts = _watched(function, operands)
        if facts is UNKNOWN:  # of these sizes; of others more may be known
            return facts
        if len(_seen) == _MOST:
            _seen.clear()
        _seen[key] = facts
    return _seen[key]


def _watched(function: Any, operands: dict[int | str, Any]) -> Facts:
    try:
        empty = {name: tree_map(_without_data, operand) for name, operand in operands.items()}
        args = [operand for name, operand in empty.items() if isinstance(name, int)]
        options = {name: operand for name, operand in empty.items() if isinstance(name, str)}
        with warnings.catch_warnings(), torch._C.DisableTorchFunction(), torch.no_grad(), _Watch() as watch:
            warnings.simplefilter("ignore")
            result = function(*args, **options)
    except Exception as error:
        log.debug("not known what %s does: %s", function, error)
        return UNKNOWN
    facts = functools.reduce(Facts.__or__, watch.found, NOTHING)
    owners = {memory: name for name, operand in empty.items() for memory in _memory(operand)}
    return replace(
        facts,
        writes=frozenset(owners[memory] for memory in watch.written if memory in owners),
        aliases=not owners.keys().isdisjoint(_memory(result)),
        is_pointwise=bool(watch.found) and all(one.is_pointwise for one in watch.found),
        is_reduction=False,
    )


class _Watch(TorchDispatchMode):  # type: ignore[misc]
    """Notes what each operator that is reached does, and which memory it may write to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Facts] = []
        self.written: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        facts = of_call((func,), args, options)
        self.found.append(facts)
        for name, operand in {**dict(enumerate(args)), **options}.items():
            if facts.writes is None or name in facts.writes:
                self.written.update(_memory(operand))
        return func(*args, **options)


def _form(operand: Any) -> Any:
    """What of an argument may decide what is done: the type of a tensor, and whatever is not one."""
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.dim(), operand.device.type
    if isinstance(operand, (list, tuple)):
        return type(operand), tuple(map(_form, operand))
    return type(operand), operand if type(operand) in (bool, int, float, str, torch.dtype) else repr(operand)


def _without_data(operand: Any) -> Any:
    if isinstance(operand, torch.Tensor):
        sizes, strides = map(number_of, operand.shape), map(number_of, operand.stride())
        return torch.empty_strided([*sizes], [*strides], dtype=operand.dtype, device="meta")
    return torch.device("meta") if isinstance(operand, torch.device) else number_of(operand)


def number_of(value: Any) -> Any:
    """A number for a symbol: its value in the trace, or any, where the data decides it."""
    if type(value) in (torch.SymInt, torch.SymFloat, torch.SymBool):
        return value.node.hint if value.node.has_hint() else 2
    return value


def _memory(values: Any) -> set[int]:
    return {value.untyped_storage()._cdata for value in tree_iter(values) if isinstance(value, torch.Tensor)}
