"""The frames that call a statement while it is traced, and a delivery from frames that stand in the same places.

What reads its callers (``stacklevel``, a logger that looks for the first frame that is not its own) sees files, lines,
functions and globals.  Dynamo inlines the callers: at delivery they are gone.
"""

from __future__ import annotations

import itertools
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .own import OWN_FILES
from .place import constant_of
from .question import question
from .trace import Trace
from .variables import Variable

# Files whose frames `warnings` and `logging` leave out when they count.
_UNCOUNTED = frozenset({logging.__file__, warnings.__file__})
_RESUMED = "torch_dynamo_resume_in"  # how Dynamo begins the name of what follows a graph break
_DIRECT = frozenset({"UserFunctionVariable", "UserMethodVariable", "NestedUserFunctionVariable"})

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

    None where that many are not traced, or where it is not certain that eager has no other frame between them: Dynamo
    leaves out those of `torch.nn.Module.__call__`, of decorators of torch and of generators, and adds some of its own.
    """
    called = dict(_calls_under_way())
    found: list[Callable[..., Any]] = []
    frames = list(trace.frames())
    while frames and frames[0].f_code.co_filename in OWN_FILES:
        frames.pop(0)
    for callee, caller in itertools.pairwise(frames):
        if len(found) == count:
            break
        function = called.get(id(caller))
        if function is None or not _is_direct(function, callee) or not _may_be_shown(caller):
            return None
        found.insert(0, _standing_in(caller))
    return Callers(tuple(found)) if len(found) == count else None


@question(otherwise=False)
def are_known(trace: Trace, count: int) -> bool:
    """Are that many callers of the statement at hand traced, with nothing between them?"""
    return callers_of(trace, count) is not None


@question(otherwise=None)
def standing_at(trace: Trace, count: int) -> Any:
    """The object of `Callers` for them; `are_known` has told that there is one."""
    return constant_of(trace, callers_of(trace, count), "graphmend_callers")


def _calls_under_way() -> Iterator[tuple[int, Variable]]:
    """What each translator is calling, by the identity of the translator: Python's own stack tells."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is InstructionTranslatorBase.call_function.__code__:
            yield id(frame.f_locals["self"]), frame.f_locals["fn"]


def _is_direct(function: Variable, callee: Any) -> bool:
    """Is it a function in Python whose own frame is the callee's?"""
    function = function.realize()
    while type(function).__name__ == "FunctoolsPartialVariable":  # is written in C: it has no frame
        function = function.func.realize()
    return type(function).__name__ in _DIRECT and function.get_code() is callee.f_code


def _may_be_shown(caller: Any) -> bool:
    return caller.f_code.co_filename not in _UNCOUNTED and not caller.f_code.co_name.startswith(_RESUMED)


def _standing_in(caller: Any) -> Callable[..., Any]:
    """A function that calls the next one from the file, line, function and globals that the caller is at."""
    code, positions = caller.f_code, getattr(caller.current_instruction, "positions", None)
    line = caller.lineno if positions is None or positions.lineno is None else positions.lineno
    names = {"co_filename": code.co_filename, "co_name": code.co_name, "co_firstlineno": line}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = code.co_qualname
    return FunctionType(_at.__code__.replace(**names), caller.f_globals)
