"""What is done at the end of a trace, whatever became of it."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

_PACKAGE = __package__.partition(".")[0]
# How Dynamo names this package's modules in guards: the global of rewritten code (`templates.RUNTIME`), and what it
# makes of the modules of inlined functions; and what follows: attributes.
_OWN = re.compile(r"G\['(?:_@graphmend|__import_(graphmend_hook\w*))'\]((?:\.\w+)*)")


def at_end(output: Any, action: Callable[[Any, BaseException | None], None]) -> None:
    """Call `action` once, with the output and the exception if there is one, at the end of this trace of the frame.

    Dynamo cleans up in a ``finally``; what is raised there takes the place of the exception that is on its way.
    """
    if "cleanup" not in vars(output):
        output.graphmend_at_end = []
        output.cleanup = functools.partial(_clean_up, output, sys.exc_info()[1])
    if action not in output.graphmend_at_end:
        output.graphmend_at_end.append(action)


def _clean_up(output: Any, outer: BaseException | None) -> None:
    """What Dynamo calls instead of the output's own `cleanup`; `outer` is no exception of this trace."""
    error = sys.exc_info()[1]
    type(output).cleanup(output)
    output.mark_bytecode_tracing_stop()
    with contextlib.ExitStack() as stack:  # one that gives orders to Dynamo raises; the others are called all the same
        for action in output.graphmend_at_end:
            stack.callback(action, output, None if error is outer else error)


def forget_own_guards(output: Any, _error: BaseException | None) -> None:
    """Drop Dynamo's guards on the functions of this package, which stay what they are: some thirty for each site."""
    with contextlib.suppress(AttributeError):  # a torch that keeps its guards otherwise keeps these
        guards = output.guards.inner
        for guard in [guard for guard in guards if _is_own(name_of(guard))]:
            guards.discard(guard)


def _is_own(name: str) -> bool:
    """Is it the name of a module or function of this package, or of a function's code?

    Dynamo gives an object the name by which it met it first: behind one of our modules there may be `torch`, and all
    that the program reads of it.  And `queue` holds what settings say, and whether this torch was understood.
    """
    found = _OWN.fullmatch(name)
    if found is None:
        return False
    home = found[1].replace("_dot_", ".") if found[1] else __package__
    owner: Any = sys.modules.get(home)
    for attribute in found[2].removesuffix(".__code__").split(".")[1:]:
        owner = getattr(owner, attribute, None)
        if isinstance(owner, FunctionType):
            home = owner.__module__
        elif isinstance(owner, ModuleType):
            home = owner.__name__
        else:
            return False
        if home.partition(".")[0] != _PACKAGE or home.endswith(".queue"):
            return False
    return owner is not None


def name_of(guarded: Any) -> str:
    """The expression of a source, or of what is guarded: a property in today's torch, once a method."""
    name = guarded.name
    return name if isinstance(name, str) else str(name())
