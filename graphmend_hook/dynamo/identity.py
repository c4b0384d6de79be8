"""Where traced code asks which object a tensor is: with `is`, among equal ones, as a key, by what hangs on it.

And where it reads other attributes of a tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
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


def before_reads(compilation: Compilation, names: Container[str], look: Callable[[Compilation], None]) -> None:
    """Call `look` first, wherever the rest of the attempt reads one of these attributes of a tensor."""

    def read(compilation: Compilation, _tensor: Variable, _translator: Any, name: str, *_: Any, **_named: Any) -> None:
        if name in names and not _is_asked_by_us(compilation):
            look(compilation)

    _stand_before(compilation, *_reader(), read)


def _watch(compilation: Compilation) -> None:
    """Stand before the places where Dynamo answers, until the end of the attempt; it traces one frame at a time."""
    from torch._dynamo.side_effects import SideEffects
    from torch._dynamo.symbolic_convert import compare_op_handlers as handlers
    from torch._dynamo.variables import object_protocol
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.hashable import HashableTracker

    for name in ("is", "is not"):
        compilation.undo.callback(handlers.__setitem__, name, handlers[name])
        handlers[name] = compilation.before(handlers[name], _compared)
    for owner, name, look in (
        (BuiltinVariable, "call_function", _called),
        (object_protocol, "vt_identity_compare", _asked),
        (HashableTracker, "__init__", _handled),
        (*_reader(), _read),
        (SideEffects, "store_attr", _handled),
    ):
        _stand_before(compilation, owner, name, look)


def _reader() -> tuple[type, str]:
    """The class, and the name of its method, that gives the attributes of a tensor."""
    from torch._dynamo.variables.tensor import TensorVariable

    return TensorVariable, "var_getattr" if hasattr(TensorVariable, "var_getattr") else "tp_getattro_impl"  # since 2.15


def _stand_before(compilation: Compilation, owner: Any, name: str, look: Callable[..., None]) -> None:
    answer = getattr(owner, name)
    compilation.undo.callback(setattr, owner, name, answer)
    setattr(owner, name, compilation.before(answer, look))


def _is_asked_by_us(compilation: Compilation) -> bool:
    return compilation.output.current_tx.f_code.co_filename in OWN_FILES


def _compared(compilation: Compilation, _translator: Any, operands: list[Variable], *_: Any, **_named: Any) -> None:
    _asked(compilation, *operands)


def _called(
    compilation: Compilation, function: Variable, _translator: Any, operands: list[Variable], *_: Any, **_named: Any
) -> None:
    if function.fn in (operator.is_, operator.is_not, id, hash):
        _asked(compilation, *operands)


def _read(compilation: Compilation, tensor: Variable, _translator: Any, name: str, *_: Any, **_named: Any) -> None:
    if name in OF_THE_OBJECT or not hasattr(torch.Tensor, name):
        _asked(compilation, tensor)


def _handled(compilation: Compilation, _owner: Any, variable: Variable, *_: Any, **_named: Any) -> None:
    _asked(compilation, variable)


def _asked(compilation: Compilation, *operands: Variable) -> None:
    if not _is_asked_by_us(compilation) and all(map(is_tensor, operands)):
        for look in compilation.of(_Looks).looks:
            look(compilation, [*operands])
