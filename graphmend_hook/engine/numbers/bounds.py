"""Between which numbers a late number lies, whatever the data is: ``(x.norm().item()) ** 2`` is no less than 0.

It is said of the finite numbers alone: infinity, and what is no number, make no operation here fail.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from ..door.variables import Variable, fake_of, is_unread, tensor_node
from ..facts import ranges
from . import late_lists, late_numbers

Bounds = tuple[float, float]
_MOST_FLOAT = 3.5e38  # of those of 32 bits, and less
_MOST_EXPONENT = 8  # of a whole number, which grows
_SUMS = (operator.add, operator.iadd)
_DIFFERENCES = (operator.sub, operator.isub)
_PRODUCTS = (operator.mul, operator.imul)
_QUOTIENTS = (operator.truediv, operator.itruediv)
POWERS = (operator.pow, operator.ipow)
_MONOTONE = (int, float, late_numbers.same, operator.pos, math.radians, math.degrees)
REMAINDERS = (operator.mod, operator.imod)
# What a comparison of a number between `low` and `high` with one between `least` and `most` gives in any case.
_CERTAIN: dict[Any, Callable[..., bool | None]] = {
    operator.lt: lambda low, high, least, most: high < least or (False if low >= most else None),
    operator.le: lambda low, high, least, most: high <= least or (False if low > most else None),
    operator.gt: lambda low, high, least, most: low > most or (False if high <= least else None),
    operator.ge: lambda low, high, least, most: low >= most or (False if high < least else None),
    operator.eq: lambda low, high, least, most: False if high < least or low > most else None,
    operator.ne: lambda low, high, least, most: True if high < least or low > most else None,
}


def bounds_of(operand: Variable) -> Bounds | None:
    """The least and the greatest that it can be; None where nobody knows."""
    if is_unread(operand):
        return None
    number = operand.realize()
    if not late_numbers.is_late(number):
        value: Any = number.as_python_constant() if number.is_python_constant() else None
        is_finite = type(value) in (bool, int, float) and math.isfinite(value)
        return (value, value) if is_finite else None
    function, operands = number.function, number.operands
    if late_numbers.is_reading(function):
        return _of_draw(operands[0]) or _of_dtype(fake_of(operands[0]).dtype)
    if function is late_numbers.select:
        return _united(operands[1:])
    if function is late_lists.counted:
        return late_lists.least_length(number), len(operands)
    parts = [bounds_of(each) for each in operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    found = _calculated(function, operands, known)
    return found if found is not None and all(map(math.isfinite, found)) else None


def truth(number: Variable) -> bool | None:
    """What a comparison gives whatever the data is; None where that decides, and of anything else."""
    certain = _CERTAIN.get(number.function)
    if certain is None or any(map(_may_be_infinite, number.operands)):
        return None
    one, other = map(bounds_of, number.operands)
    return None if one is None or other is None else certain(*one, *other)


def _of_draw(tensor: Variable) -> Bounds | None:
    """Between which numbers torch's generator draws the one that the tensor holds; None of any other."""
    found = ranges.range_of(late_numbers.trace_now(), tensor_node(tensor))
    if found is None or found.may_be_nan or not (math.isfinite(found.low) and math.isfinite(found.high)):
        return None
    return found.low, found.high


def _of_dtype(dtype: torch.dtype) -> Bounds | None:
    if dtype is torch.bool:
        return 0, 1
    if dtype.is_floating_point:
        return None if dtype is torch.float64 else (-_MOST_FLOAT, _MOST_FLOAT)
    return None if dtype.is_complex else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)


def _united(operands: list[Variable]) -> Bounds | None:
    found = [bounds_of(each) for each in operands]
    known = [each for each in found if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(found) else None


def _calculated(function: Any, operands: list[Variable], parts: list[Bounds]) -> Bounds | None:
    (low, high), (least, most) = parts[0], parts[-1]
    if function in (min, max):
        if any(map(_may_be_infinite, operands)):
            return _united(operands)  # it may be the other one, too, where the one is no number
        return function(low, least), function(high, most)
    if function in _SUMS:
        return low + least, high + most
    if function in _DIFFERENCES:
        return low - most, high - least
    if function in _PRODUCTS:
        ends = [one * other for one in (low, high) for other in (least, most)]
        return min(ends), max(ends)
    if function in _QUOTIENTS and least == most != 0:
        return min(low / least, high / least), max(low / least, high / least)
    if function in POWERS and least == most:
        return power(low, high, least)
    if function is round:
        places = [] if len(parts) == 1 else [int(least)]
        return round(low, *places), round(high, *places)
    if function in (abs, math.fabs):
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if function in REMAINDERS and least == most > 0:
        return 0, most
    return _of_one(function, low, high)


def _of_one(function: Any, low: float, high: float) -> Bounds | None:
    """What a function of one number gives of those from `low` to `high`."""
    if function is operator.neg:
        return -high, -low
    if function in (math.sin, math.cos):
        return -1.0, 1.0
    return (function(low), function(high)) if function in _MONOTONE else None


def limits_of(operand: Variable) -> Bounds:
    """The same, where one end may be unknown: ``min(loss, 100)`` is no more than 100.  Infinity is within them, too.

    A number that may be none is given back by ``min`` where it stands first, and the other one where it stands last.
    """
    known = bounds_of(operand)
    if known is not None and not _may_be_infinite(operand):
        return known
    low, high = -math.inf, math.inf
    number = None if is_unread(operand) else operand.realize()
    if number is None or not late_numbers.is_late(number):
        return low, high
    function, operands = number.function, number.operands
    if function in (min, max):
        firm = [limits_of(each) for each in operands if not _may_be_infinite(each) and not is_unread(each)]
        low = max((least for least, _ in firm), default=low) if function is max else low
        high = min((most for _, most in firm), default=high) if function is min else high
    elif function in (abs, math.fabs):
        low = 0
    elif function in (float, late_numbers.same):
        return limits_of(operands[0])
    return low, high


def _may_be_infinite(operand: Variable) -> bool:
    """May it be infinite, or no number?  A whole number of the graph is neither, nor what is made of such by sums."""
    if not late_numbers.is_late(operand) or late_numbers.kind_of(operand) in (bool, int):
        return False
    number = operand.realize()
    if late_numbers.is_reading(number.function):
        return _of_draw(number.operands[0]) is None
    if number.function is late_numbers.select:
        return True
    return any(map(_may_be_infinite, number.operands))


def power(low: float, high: float, exponent: float) -> Bounds | None:
    """What a number between those is to the power of that; None where it might fail, or be complex."""
    is_whole = exponent == int(exponent)
    if exponent == 0:
        return 1, 1
    if low <= 0 and (exponent <= 0 or (low < 0 and not is_whole)):
        return None
    try:
        ends = [float(low) ** exponent, float(high) ** exponent]
    except OverflowError:
        return None
    return (min(0.0, *ends) if low <= 0 else min(ends)), max(ends)


def may_be_raised(base: Variable, exponent: Any) -> bool:
    """Can ``base ** exponent``, of a constant exponent, not fail?"""
    found = bounds_of(base)
    if found is None or type(exponent) not in (int, float) or not math.isfinite(exponent):
        return False
    if late_numbers.kind_of(base) is not float and abs(exponent) > _MOST_EXPONENT:
        return False
    given = power(*found, exponent)
    return given is not None and all(map(math.isfinite, given))


def is_finite(operand: Variable) -> bool:
    """Is it known that it is neither infinite, nor no number?"""
    return bounds_of(operand) is not None and not _may_be_infinite(operand)


def are_known(operand: Variable) -> bool:
    """Is it known that it is no more than a float can be?"""
    return bounds_of(operand) is not None


def is_above_zero(operand: Variable) -> bool:
    found = bounds_of(operand)
    return found is not None and found[0] > 0
