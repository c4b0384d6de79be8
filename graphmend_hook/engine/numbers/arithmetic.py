"""Arithmetic on captured numbers that fails in Python where PyTorch computes on: what has to hold for it not to fail.

PyTorch simplifies such numbers as formulas, in which ``1.0 / 0`` is infinite, and drops what nothing uses.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..attempt.compilation import Compilation
from ..door.variables import is_unbacked

Need = Callable[[Compilation, "list[Any] | None"], None]
_DIVISIONS = frozenset({"truediv", "floordiv", "mod"})
# PyTorch finds no remainder by 3 above 2, also of a float, and makes a float of the larger of 2 and 1.5.
_OF_WHOLE, _OF_ONE_KIND = frozenset({"mod", "imod"}), frozenset({"max", "min", "sym_max", "sym_min"})
# How what they take has to compare with 0.
_DOMAINS = {"sqrt": operator.ge, "log2": operator.gt}
_SAFE = frozenset({"float", "int", "ite", "max", "min", "not", "sum", "constrain_range", "size", "stride", "numel"})


def before_arithmetic(compilation: Compilation, need: Need) -> None:
    """Before such an operation, call `need` with what has to hold, as symbolic truths; None where that is not known."""
    output = compilation.output
    if "create_proxy" not in vars(output):
        output.create_proxy = compilation.before(output.create_proxy, functools.partial(_look, need))


def _look(
    need: Need, compilation: Compilation, kind: str, target: Any, args: Sequence[Any], *_: Any, **_named: Any
) -> None:
    operands = [_value(argument) for argument in args] if kind == "call_function" else []
    if any(isinstance(operand, (torch.SymInt, torch.SymFloat)) and is_unbacked(operand) for operand in operands):
        conditions = _conditions(getattr(target, "__name__", ""), operands)
        if conditions is None or conditions:
            need(compilation, conditions)


def _value(argument: Any) -> Any:
    node = getattr(argument, "node", None)
    return node.meta.get("example_value") if isinstance(node, torch.fx.Node) else argument


def _conditions(name: str, operands: Sequence[Any]) -> list[Any] | None:
    """What has to hold of the numbers, or the function of that name fails; None where that is not known."""
    if any(isinstance(operand, torch.Tensor) for operand in operands):
        return []
    name, floats = name.strip("_"), [isinstance(operand, (float, torch.SymFloat)) for operand in operands]
    if (any(floats) and name in _OF_WHOLE) or (len({*floats}) > 1 and name in _OF_ONE_KIND):
        return None
    if name in _DIVISIONS or name.removeprefix("i") in _DIVISIONS:
        return [] if _is_number(operands[1]) else [operands[1] != 0]
    if name in ("pow", "ipow"):
        base, exponent = operands[:2]
        if type(exponent) is int and exponent >= 0:
            return []
        if _is_number(base):
            return None
        return [base >= 0] if _is_number(exponent) and exponent > 0 else [base > 0]
    if name.startswith("sym_"):
        function = name.removeprefix("sym_")
        if function in _DOMAINS:
            return [_DOMAINS[function](operands[0], 0)]
        return [] if function in _SAFE else None
    return []


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool)
