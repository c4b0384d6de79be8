"""``torch.tensor([a, b])``, ``torch.tensor(loss.item())`` of late numbers: made of the tensors that stand for these.

That of a list of the state to which the frame appends is none of the graph: it is made behind it, and so is what its
methods give (``torch.tensor(list(self.recent)).median().item()``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..door import torch_modes
from ..door.tracer import Trace, trace_at
from ..door.variables import Variable, is_unread
from . import late_lists, late_numbers, number_tensors, state_lists
from .captured_tensors import call
from .late_numbers import Filled, Made, Single, is_late, kind_of

_MAKING = (torch.tensor, torch.as_tensor)
_ROUNDED = (torch.float32, torch.float64)  # to these a float64 is rounded as a float of Python is
_MOST = 256  # numbers in a list
_OF_NONE = ("mean", "median", "sum")  # give NaN of no number, or 0
_OF_ONE = ("max", "min")
late_numbers.methods |= {
    Made: {name: (getattr(torch.Tensor, name), Single) for name in _OF_NONE},
    Filled: {name: (getattr(torch.Tensor, name), Single) for name in (*_OF_NONE, *_OF_ONE)},
    Single: {"item": (torch.Tensor.item, float)},
}


def add_handlers(_kind: Any) -> None:
    """Let these functions take late numbers."""
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    otherwise = TorchInGraphFunctionVariable.call_function

    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Sequence[Variable], kwargs: Any) -> Any:
        if function.value not in _MAKING:
            return otherwise(function, translator, args, kwargs)
        device = _device(kwargs.get("device"))
        is_known = len(args) == 1 and kwargs.keys() <= {"dtype", "device"} and device is not None
        made = _made_of(translator, args[0], kwargs.get("dtype"), device) if is_known else None
        if made is None and (late := next(filter(is_late, _items(args[0]) or ()), None)):
            late_numbers.give_up(late)
        return otherwise(function, translator, args, kwargs) if made is None else made

    TorchInGraphFunctionVariable.call_function = call_function


class _MadeBehind:
    """Makes a tensor of a list, behind the graph."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def __call__(self, numbers: Any) -> torch.Tensor:
        return torch.tensor(numbers, dtype=self._dtype)


def _device(given: Variable) -> torch.device | None:
    """The device that is asked for, the host's if none is; None where that is not known."""
    if given is None or (given.is_python_constant() and given.as_python_constant() is None):
        return torch.device("cpu")
    return torch.device(given.as_python_constant()) if given.is_python_constant() else None


def _made_of(translator: Any, given: Variable, dtype: Variable, device: torch.device) -> Variable:
    """The tensor of what holds a late number, or is a list of the state; None where it is left to Dynamo."""
    trace = trace_at(translator)
    if trace is None or not torch_modes.is_device_plain(trace):
        return None
    wanted = None if trace.is_in_a_context else _dtype({float}, dtype)  # a mode may have ended by then
    numbers = None if wanted is None or device.type != "cpu" else state_lists.numbers_of(given)
    if numbers is not None and wanted is not None:
        kind = Filled if state_lists.has_one(numbers) else Made
        return late_numbers.kind_of_variable()(_MadeBehind(wanted), [numbers], kind, numbers.lines)
    return _made(trace, given, dtype, device)


def _made(trace: Trace, given: Variable, dtype: Variable, device: torch.device) -> Variable:
    """The tensor of a late number, or of a list or a tuple with one; None where it would not be equal to the bit."""
    items = _items(given)
    kinds = set() if items is None else {*map(kind_of, items)}
    wanted = _dtype(kinds, dtype)
    if items is None or wanted is None or not any(map(is_late, items)):
        return None
    parts = [number_tensors.whole_of(trace, item, kind_of(item)) for item in items]
    if any(part is None for part in parts):
        return None
    if len(kinds) > 1:  # a whole number goes by way of a float of Python
        parts = [call(trace, torch.Tensor.to, part, torch.float64) for part in parts]
    found = parts[0] if is_late(given) else call(trace, torch.stack, [part.as_proxy() for part in parts])
    # A tensor of its own, which the program may write to.
    return call(trace, torch.clone, call(trace, torch.Tensor.to, found, device, wanted))


def _dtype(kinds: set[type], dtype: Variable) -> torch.dtype | None:
    """That of a tensor of such numbers; None for truths among others, or where they would be rounded in another way."""
    if kinds not in ({float}, {bool}, {int}, {float, int}):
        return None
    kind = float if float in kinds else next(iter(kinds))
    own = {float: torch.get_default_dtype(), bool: torch.bool, int: torch.int64}[kind]
    wanted = own if dtype is None else dtype.as_python_constant() if dtype.is_python_constant() else None
    return wanted if wanted in (_ROUNDED if kind is float else (own,)) else None


def _items(given: Variable) -> list[Variable] | None:
    """The numbers; None of anything else."""
    if is_unread(given):
        return None
    given = given.realize()
    if is_late(given):
        return None if late_lists.is_list(given) else [given]
    if type(given).__name__ not in ("ListVariable", "TupleVariable") or not 0 < len(given.items) <= _MOST:
        return None
    items = [each if is_unread(each) else each.realize() for each in given.items]
    are_numbers = all(
        late_numbers.may_stay_unread(each) if is_unread(each) else late_numbers.is_number(each) for each in items
    )
    return items if are_numbers else None
