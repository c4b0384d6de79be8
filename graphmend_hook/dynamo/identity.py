"""Where traced code asks which object a tensor is: with `is`, among equal ones, as a key, by what hangs on it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..tensor_ops import OF_THE_OBJECT
from .compilation import Compilation
from .own import OWN_FILES
from .variables import Variable, is_tensor

Look = Callable[[Compilation, list[Variable]], None]


@dataclass
class _Looks:
    looks: list[Look] = field(default_factory=list)


def before_questions(compilation: Compilation, look: Look) -> None:
    """Call `look` with the tensors first, wherever the rest of the attempt asks which objects they are."""
    looks = compilation.of(_Looks).looks
    if not looks:
        _watch(compilation)
    if look not in looks:
        looks.append(look)


def _watch(compilation: Compilation) -> None:
    """Stand before the places where Dynamo answers, until the end of the attempt; it traces one frame at a time."""
    from torch._dynamo.side_effects import SideEffects
    from torch._dynamo.symbolic_convert import compare_op_handlers as handlers
    from torch._dynamo.variables import object_protocol
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.hashable import HashableTracker
    from torch._dynamo.variables.tensor import TensorVariable

    reader = "var_getattr" if hasattr(TensorVariable, "var_getattr") else "tp_getattro_impl"  # since torch 2.15

    def before(answer: Callable[..., Any], asked: Callable[..., list[Variable]]) -> Callable[..., Any]:
        @functools.wraps(answer)
        def look_and_answer(*given: Any, **named: Any) -> Any:
            compilation.call(lambda _, operands: _look(compilation, asked(*operands)), given)
            return answer(*given, **named)

        return look_and_answer

    for name in ("is", "is not"):
        compilation.undo.callback(handlers.__setitem__, name, handlers[name])
        handlers[name] = before(handlers[name], lambda _translator, operands, *_: operands)
    for owner, name, asked in (
        (BuiltinVariable, "call_function", _called),
        (object_protocol, "vt_identity_compare", lambda left, right, *_: [left, right]),
        (HashableTracker, "__init__", lambda _key, variable, *_: [variable]),
        (TensorVariable, reader, _read),
        (SideEffects, "store_attr", lambda _effects, variable, *_: [variable]),
    ):
        answer = getattr(owner, name)
        compilation.undo.callback(setattr, owner, name, answer)
        setattr(owner, name, before(answer, asked))


def _called(function: Variable, _translator: Any, operands: list[Variable], *_: Any) -> list[Variable]:
    return operands if function.fn in (operator.is_, operator.is_not, id, hash) else []


def _read(tensor: Variable, _translator: Any, name: str, *_: Any) -> list[Variable]:
    return [tensor] if name in OF_THE_OBJECT or not hasattr(torch.Tensor, name) else []


def _look(compilation: Compilation, operands: list[Variable]) -> None:
    if not operands or compilation.output.current_tx.f_code.co_filename in OWN_FILES:
        return
    if all(map(is_tensor, operands)):
        for look in compilation.of(_Looks).looks:
            look(compilation, operands)
