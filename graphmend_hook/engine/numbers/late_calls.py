"""Functions of Python, numpy and `statistics` that are given lists of late numbers: Python calls them behind the graph.

``np.mean(losses)``, ``max(losses)``, ``sorted(losses)``: none of them can fail on floats, whatever these are.
"""

from __future__ import annotations

import functools
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..door.tracer import is_caught
from ..door.variables import Variable, fake_of, is_unread
from . import late_lists, late_numbers, late_tensor_lists, number_tensors, state_lists
from .late_numbers import is_late, kind_of, late_variable

# Of numpy, by the names, since the package may not be there; what they may make of infinity is a warning.
_OF_NUMPY = frozenset({"amax", "amin", "average", "max", "mean", "median", "min", "std", "sum", "var"})
_ASKING = ("isfinite", "isinf", "isnan")  # of numpy too, of one number: they give a truth of numpy's own type
_OF_STATISTICS = (statistics.mean, statistics.median)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_MOST = 1024  # numbers in a list


def add_handlers(_kind: Any) -> None:
    """Let these functions take lists with late numbers."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.functions import PolyfilledFunctionVariable, UserFunctionVariable
    from torch._dynamo.variables.misc import NumpyVariable

    _let(NumpyVariable, "value", _is_of_numpy, _made_of)
    _let(NumpyVariable, "value", _add_asking().__contains__, _asked_of)
    _let(UserFunctionVariable, "fn", _OF_STATISTICS.__contains__, _made_of)
    _let(PolyfilledFunctionVariable, "fn", lambda function: function is sum, _summed)
    _let_choose(BuiltinVariable)
    _let_sort(BuiltinVariable)


def _is_of_numpy(function: Any) -> bool:
    is_numpys = (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"
    return is_numpys and getattr(function, "__name__", "") in _OF_NUMPY


def _add_asking() -> tuple[Callable[..., Any], ...]:
    """Let a test ask for what those of `_ASKING` give that numpy has, where it is there: these (`number_tensors`)."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return ()
    for name in _ASKING:
        number_tensors.CALCULATED[getattr(numpy, name)] = getattr(torch, name)
    number_tensors.DTYPES[numpy.bool_] = torch.bool
    return tuple(getattr(numpy, name) for name in _ASKING)


def _asked_of(function: Callable[..., Any], given: Variable) -> Variable:
    """``numpy.isnan(number)``, which cannot fail on a float; else None."""
    if is_unread(given) or not is_late(given) or not issubclass(kind_of(given), float):
        return None
    return late_variable(function, [given], type(function(0.0)))


def _let(kind: Any, holder: str, is_such: Callable[[Any], bool], made_of: Callable[[Any, Variable], Variable]) -> None:
    """holder: the attribute of such a variable that is the function; made_of: what such a function makes of a list."""
    otherwise = kind.call_function

    @functools.wraps(otherwise)
    def call_function(function: Any, translator: Any, args: Sequence[Variable], kwargs: Any) -> Any:
        called = getattr(function, holder)
        is_asked = len(args) == 1 and not kwargs and is_such(called)
        made = made_of(called, args[0]) if is_asked else None
        if made is not None:
            return made
        return otherwise(function, translator, args, kwargs)

    kind.call_function = call_function


def _made_of(function: Callable[..., Any], given: Variable) -> Variable:
    """What the function makes of the list, if that holds late numbers of one type, one at least; else None."""
    if state_lists.numbers_of(given) is not None and not _may_raise():
        return state_lists.made_of(function, given)
    parts = _parts_of(given)
    numbers = parts[1::2] if parts else []
    if not parts or not _are_of_one_kind(numbers, function) or _may_raise():
        return None
    if late_lists.kind_of_numbers(parts) is None:
        return None
    result = function([kind_of(each)() for each in numbers])
    return late_variable(late_lists.of_list(function), parts, type(result))


def _summed(function: Callable[..., Any], given: Variable) -> Variable:
    made = state_lists.made_of(function, given)
    if made is None and late_lists.is_list(given):
        made = late_lists.reduced(function, given) or late_tensor_lists.joined(
            late_numbers.trace_now(), function, given
        )
    return made


def _may_raise() -> bool:
    """May a warning of numpy be an error here, or a handler of the program catch one?"""
    is_error = any(action == "error" for action, *_ in warnings.filters)
    numpy = sys.modules.get("numpy")
    is_raised = numpy is not None and "raise" in numpy.geterr().values()
    return is_error or is_raised or is_caught(late_numbers.trace_now())


def _let_choose(kind: Any) -> None:
    """``max(numbers)``: each of two is chosen as Dynamo goes through them."""
    otherwise = kind._call_min_max_binary

    @functools.wraps(otherwise)
    def choose(function: Any, translator: Any, one: Any, other: Any) -> Any:
        if one is not None and other is not None and (is_late(one) or is_late(other)):
            return function.call_function(translator, [one, other], {})
        return otherwise(function, translator, one, other)

    kind._call_min_max_binary = choose


def _let_sort(kind: Any) -> None:
    otherwise = kind.call_sorted

    @functools.wraps(otherwise)
    def call_sorted(function: Any, translator: Any, given: Variable, **kwargs: Any) -> Any:
        parts = None if kwargs else _parts_of(given)
        if parts is not None and {*map(kind_of, parts[1::2])} <= {*late_numbers.OF_NUMBERS}:
            return late_variable(late_lists.of_list(sorted), parts, list)
        return otherwise(function, translator, given, **kwargs)

    kind.call_sorted = call_sorted


def _parts_of(given: Variable) -> list[Variable] | None:
    """The parts of a list, or a tuple, that holds numbers, some of them late; None of anything else."""
    if is_unread(given):
        return None
    if late_lists.is_list(given):
        return late_lists.parts_of(given)
    if type(given.realize()).__name__ not in ("ListVariable", "TupleVariable"):
        return None
    items = [each if is_unread(each) else each.realize() for each in given.realize().items]
    are_numbers = len(items) <= _MOST and any(map(is_late, items)) and not any(map(is_unread, items))
    return late_lists.certain(items) if are_numbers and all(map(late_numbers.is_number, items)) else None


def _are_of_one_kind(numbers: Sequence[Variable], function: Callable[..., Any]) -> bool:
    """Are all floats, or all whole numbers that numpy holds as such?  `statistics` gives a float or a whole number."""
    kinds = {*map(kind_of, numbers)}
    are_whole = function not in _OF_STATISTICS and kinds in ({int}, {bool}) and all(map(_is_read, numbers))
    return kinds == {float} or are_whole


def _is_read(number: Variable) -> bool:
    is_read = is_late(number) and late_numbers.is_reading(number.function)
    return is_read and fake_of(number.operands[0]).dtype in _WHOLE
