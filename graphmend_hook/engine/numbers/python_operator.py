"""The operator of graphs by which Python calculates: what tensors do not give to the bit, of numbers of the graph.

``(1 + epoch) ** -0.7`` is another number by a kernel of torch than by Python.  So a formula of Python's functions, as a
text, is an operand of the operator, and the tensors that its numbers are read from are the others.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from ..door.variables import Variable, is_unread
from ..operators import define, defined
from . import late_numbers

_NAME = "calculated"
_OF_OPERATOR = (
    *("add", "sub", "mul", "truediv", "mod", "floordiv", "neg", "pos", "not_", "pow"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in _OF_OPERATOR},
    **{each.__name__: each for each in (abs, bool, float, int, min, max, round)},
    **{each.__name__: each for each in (math.isnan, math.isinf, math.isfinite, math.fabs)},
    **{each.__name__: each for each in (math.exp, math.sqrt, math.log, math.log2, math.log10)},
    **{
        each.__name__: each for each in (math.sin, math.cos, math.tan, math.atan, math.tanh, math.radians, math.degrees)
    },
    **{each.__name__: each for each in (late_numbers.select, late_numbers.same, late_numbers.divide)},
}
_NAMES = {function: name for name, function in _FUNCTIONS.items()} | {
    getattr(operator, f"i{name}"): name for name in _OF_OPERATOR if hasattr(operator, f"i{name}")
}


class NoFormulaError(Exception):
    """The number is made of more than numbers of the graph and constants."""


def formula_of(number: Variable, of_state: Callable[[Variable], Variable]) -> tuple[str, list[Variable]]:
    """The number as a formula, and the tensors that it is made of; raises `NoFormulaError`.

    of_state: gives the tensor () of a whole number of the program's state, None where it has none.
    """
    tensors: list[Variable] = []
    return json.dumps(_encoded(number, tensors, of_state)), tensors


def _encoded(operand: Variable, tensors: list[Variable], of_state: Callable[[Variable], Variable]) -> Any:
    operand = operand.realize() if not is_unread(operand) else operand
    if late_numbers.is_late(operand):
        if late_numbers.is_reading(operand.function):
            return _place(operand.operands[0], tensors)
        name = _NAMES.get(operand.function)
        if name is None:
            raise NoFormulaError
        return [name, *(_encoded(each, tensors, of_state) for each in operand.operands)]
    if is_unread(operand) or late_numbers.symbol_of(operand) is not None:
        made = of_state(operand)
        if made is None:
            raise NoFormulaError
        return _place(made, tensors)
    if operand.is_tensor():
        return _place(operand, tensors)
    value: Any = operand.as_python_constant() if operand.is_python_constant() else None
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) in (bool, int):
        return {type(value).__name__: str(int(value))}
    raise NoFormulaError


def _place(tensor: Variable, tensors: list[Variable]) -> Any:
    if tensor not in tensors:
        tensors.append(tensor)
    return {"tensor": tensors.index(tensor)}


def _value(formula: Any, numbers: list[Any]) -> Any:
    if isinstance(formula, list):
        return _FUNCTIONS[formula[0]](*[_value(each, numbers) for each in formula[1:]])
    ((kind, value),) = formula.items()
    if kind == "tensor":
        return numbers[value]
    return float.fromhex(value) if kind == "float" else bool(int(value)) if kind == "bool" else int(value)


def _calculate(formula: str, tensors: list[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(_value(json.loads(formula), [tensor.item() for tensor in tensors]), dtype=dtype)


def _fake(formula: str, tensors: list[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty((), dtype=dtype)


@functools.cache
def calculated() -> Any:
    """It gives a tensor () of that dtype: what the formula makes of the numbers that the tensors () hold."""
    define(_NAME, "(str formula, Tensor[] tensors, ScalarType dtype) -> Tensor", _calculate, _fake)
    return defined(_NAME)
