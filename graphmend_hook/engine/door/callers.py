"""The frames that call a statement while it is traced, and a delivery from frames that stand in the same places.

What reads its callers (``stacklevel``, a logger that looks for the first frame that is not its own) sees files, lines,
functions and globals.  Dynamo inlines the callers: at delivery they are gone.
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from ..epilogue import deferral
from .compiled_code import RESUMED
from .own_code import OWN_FILES
from .question import question
from .tracer import Trace
from .variables import Variable

# Files whose frames `warnings` and `logging` leave out when they count, and those whose frames eager does not have.
_UNCOUNTED = frozenset({logging.__file__, warnings.__file__}) | OWN_FILES
_ASKING = frozenset({"is_compiling", "is_dynamo_compiling"})  # names in code that may go another way in eager
_DIRECT = frozenset({"UserFunctionVariable", "UserMethodVariable", "NestedUserFunctionVariable"})

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = str(Path(__file__).parents[2]) + os.sep

Delivery = Callable[[Any, Any], Any]

# All of its code stands on its first line.
_at = lambda call, *rest: call(*rest)  # noqa: E731


@dataclass(frozen=True)
class Callers:
    """Makes a delivery from frames that stand where the callers of its statement stood, the outermost first."""

    frames: tuple[Callable[..., Any], ...]

    def __call__(self, pair: tuple[Delivery, Any], values: Any) -> None:
        """pair: the delivery, and its target."""
        outermost, *inner = self.frames
        outermost(*inner, *pair, values)


def callers_of(trace: Trace, count: int) -> Callers | None:
    """The nearest `count` callers of the statement at hand.

    None where that many are not traced, or where it is not certain which frames eager has between them: Dynamo leaves
    some out, such as those of ``torch.nn.Module.__call__``, and adds some of its own.
    """
    called = dict(_calls_under_way())
    found: list[Callable[..., Any]] = []
    frames = list(trace.frames())
    while frames and frames[0].f_code.co_filename in OWN_FILES:
        frames.pop(0)
    for callee, caller in itertools.pairwise(frames):
        if len(found) >= count:
            break
        between = _between(called.get(id(caller)), callee.f_code)
        if between is None or not _may_be_shown(caller):
            return None
        found += [*between, _standing_in(caller.f_code, _line_of(caller), caller.f_globals)]
    return Callers(tuple(reversed(found[:count]))) if len(found) >= count else None


def is_called_by_the_program() -> bool:
    """Does code of the program, which Dynamo runs as it is, call the frame that is being compiled?

    So it is behind a graph break, and where Dynamo has given the caller up; else torch does, for whoever compiled it.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code, frame = frame.f_code, frame.f_back
        if code.co_name == "compile_wrapper" and code.co_filename.endswith("eval_frame.py"):
            return False
        if not code.co_filename.startswith((_TORCH, _OWN)):
            return True
    return False


@question(otherwise=None)
def constant_of(_trace: Trace, number: Variable) -> Any:
    """The whole number, where the trace knows it; None where it is symbolic, or something else."""
    if not number.is_python_constant():
        return None
    value = number.as_python_constant()
    return value if type(value) is int else None


@question(otherwise=False)
def are_known(trace: Trace, count: int) -> bool:
    """Are that many callers of the statement at hand traced, with nothing between them?"""
    return callers_of(trace, count) is not None


@question(otherwise=None)
def standing_at(trace: Trace, count: int) -> Any:
    """The object of `Callers` for them; `are_known` has told that there is one."""
    return deferral.constant_of(trace, callers_of(trace, count), "graphmend_callers")


def _calls_under_way() -> Iterator[tuple[int, Variable]]:
    """What each translator is calling, by the identity of the translator: Python's own stack tells."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is InstructionTranslatorBase.call_function.__code__:
            yield id(frame.f_locals["self"]), frame.f_locals["fn"]


def _between(function: Variable | None, callee: CodeType) -> Sequence[Callable[..., Any]] | None:
    """The frames between the call of the function and the frame of the callee, the innermost first; None if unknown."""
    if function is None:
        return None
    function = function.realize()
    while type(function).__name__ == "FunctoolsPartialVariable":  # is written in C: it has no frame
        function = function.func.realize()
    if type(function).__name__ in _DIRECT:
        return () if function.get_code() is callee else None
    if type(function).__name__ != "UnspecializedNNModuleVariable" or function.value._compiled_call_impl is not None:
        return None
    module = function.value
    is_usual = type(module).__call__ is torch.nn.Module.__call__ and "forward" not in vars(module)
    return _of_module_calls() if is_usual and _code_of(type(module), "forward") is callee else None


def _code_of(kind: type, method: str) -> CodeType | None:
    return getattr(getattr(kind, method, None), "__code__", None)


class _Asking(torch.nn.Module):  # type: ignore[misc]
    """Gives the frames that the call of a module has above that of its `forward`."""

    def forward(self) -> list[FrameType]:
        frame, found = sys._getframe().f_back, []
        while frame is not None and frame.f_code is not _of_module_calls.__wrapped__.__code__:
            found.append(frame)
            frame = frame.f_back
        return found


@functools.cache
def _of_module_calls() -> Sequence[Callable[..., Any]]:
    """What stands in for the frames of ``torch.nn.Module.__call__``, the innermost first, as they are without hooks."""
    return [_standing_in(frame.f_code, frame.f_lineno, frame.f_globals) for frame in _Asking()()]


def _may_be_shown(caller: Any) -> bool:
    """Is it a frame of its own in eager too, at the line at which it is traced, and is it counted?"""
    ours = caller.parent is not None and caller.parent.f_code.co_filename in OWN_FILES  # a side of a branch, say
    if ours or not _ASKING.isdisjoint(caller.f_code.co_names):
        return False
    return caller.f_code.co_filename not in _UNCOUNTED and not RESUMED.fullmatch(caller.f_code.co_name)


def _line_of(caller: Any) -> int:
    positions = getattr(caller.current_instruction, "positions", None)
    line: int = caller.lineno if positions is None or positions.lineno is None else positions.lineno
    return line


def _standing_in(code: CodeType, line: int, scope: dict[str, Any]) -> Callable[..., Any]:
    """A function that calls the next one from the file, line, function and globals of a frame."""
    names: dict[str, Any] = {"co_filename": code.co_filename, "co_name": code.co_name, "co_firstlineno": line}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = code.co_qualname
    return FunctionType(_at.__code__.replace(**names), scope)
