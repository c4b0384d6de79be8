"""Where traced code asks which object a tensor is: with `is`, among equal ones, as a key, by what hangs on it.

And whether it asks a tensor if it requires a gradient.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch import autograd_function

from ...source.tensor_ops import OF_THE_OBJECT
from ..attempt.compilation import Compilation
from ..door.own_code import OWN_FILES
from ..door.variables import Variable, is_tensor

Look = Callable[[Compilation, list[Variable]], None]


# The attributes of a tensor, and of what is computed of it, by which can be told whether it requires a gradient.
_OF_GRADIENTS = frozenset({"requires_grad", "is_leaf", "grad_fn", "grad", "retains_grad", "output_nr"})


_OF_KINDS = frozenset({"__class__", "_is_param", *_OF_GRADIENTS})


@dataclass
class _Looks:
    """Who is told of a question which object a tensor is, and of one of what kind it is."""

    looks: list[Look] = field(default_factory=list)
    of_kinds: list[Look] = field(default_factory=list)


@dataclass
class _Asked:
    is_watched: bool = False
    is_asked: bool = False


def before_questions(compilation: Compilation, look: Look) -> None:
    """Call `look` with the tensors first, wherever the rest of the attempt asks which objects they are."""
    _tell(compilation, compilation.of(_Looks).looks, look)


def before_kinds(compilation: Compilation, look: Look) -> None:
    """The same where it asks of what kind a tensor is: a parameter, say."""
    _tell(compilation, compilation.of(_Looks).of_kinds, look)


def _tell(compilation: Compilation, told: list[Look], look: Look) -> None:
    known = compilation.of(_Looks)
    if not (known.looks or known.of_kinds):
        _watch(compilation)
    if look not in told:
        told.append(look)


def watch_gradients(compilation: Compilation) -> None:
    """Remember whether the rest of the attempt asks a tensor if it requires a gradient.

    So does Dynamo itself for a function of autograd: where nothing that it is given requires one, its backward is lost.
    """
    from torch._dynamo.variables.misc import AutogradFunctionVariable

    asked = compilation.of(_Asked)
    if not asked.is_watched:
        asked.is_watched = True
        _stand_before(compilation, *_reader(), _read_of_gradients)
        _stand_before(compilation, AutogradFunctionVariable, "call_apply", _applied)


def asks_for_gradients(compilation: Compilation) -> bool:
    """Has traced code asked for that since it is watched?"""
    return compilation.of(_Asked).is_asked


def _read_of_gradients(
    compilation: Compilation, _tensor: Variable, _translator: Any, name: str, *_: Any, **_named: Any
) -> None:
    if name in _OF_GRADIENTS and _is_of_the_program(compilation):
        compilation.of(_Asked).is_asked = True


def _applied(compilation: Compilation, *_: Any, **_named: Any) -> None:
    compilation.of(_Asked).is_asked = True


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


def _is_of_the_program(compilation: Compilation) -> bool:
    """Does the program ask?  Torch itself asks whether a function of autograd gives one of its arguments."""
    file = compilation.output.current_tx.f_code.co_filename
    return file not in OWN_FILES and file != autograd_function.__file__


def _compared(compilation: Compilation, _translator: Any, operands: list[Variable], *_: Any, **_named: Any) -> None:
    _asked(compilation, *operands)


def _called(
    compilation: Compilation, function: Variable, _translator: Any, operands: list[Variable], *_: Any, **_named: Any
) -> None:
    if function.fn in (operator.is_, operator.is_not, id, hash):
        _asked(compilation, *operands)
    elif function.fn in (isinstance, type):
        _asked_of_kind(compilation, operands[0])


def _read(compilation: Compilation, tensor: Variable, _translator: Any, name: str, *_: Any, **_named: Any) -> None:
    if name in OF_THE_OBJECT or not hasattr(torch.Tensor, name):
        _asked(compilation, tensor)
    if name in _OF_KINDS:
        _asked_of_kind(compilation, tensor)


def _handled(compilation: Compilation, _owner: Any, variable: Variable, *_: Any, **_named: Any) -> None:
    _asked(compilation, variable)


def _asked_of_kind(compilation: Compilation, operand: Variable) -> None:
    _told(compilation, compilation.of(_Looks).of_kinds, [operand])


def _asked(compilation: Compilation, *operands: Variable) -> None:
    _told(compilation, compilation.of(_Looks).looks, [*operands])


def _told(compilation: Compilation, looks: list[Look], operands: list[Variable]) -> None:
    if _is_of_the_program(compilation) and all(map(is_tensor, operands)):
        for look in looks:
            look(compilation, operands)
