"""What is this package's own: code that rewritten code calls, and Dynamo inlines; and Dynamo's guards on it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_PATH = Path(__file__).parents[2]
FILES = tuple(
    sorted(file for part in ("engine/**/*.py", "runtime.py", "rules/**/traced*.py") for file in _PATH.glob(part))
)
OWN_FILES = frozenset(str(file) for file in FILES if file.name != "probe_programs.py")  # a program's
_PACKAGE = __package__.partition(".")[0]
_RUNTIME = f"{_PACKAGE}.runtime"
_QUEUE = f"{_PACKAGE}.engine.epilogue.queue"
# How Dynamo names this package's modules in guards: the global of rewritten code (`templates.RUNTIME`), and what it
# makes of the modules of inlined functions; and what follows: attributes.
_OWN = re.compile(r"G\['(?:_@graphmend|__import_(graphmend_hook\w*))'\]((?:\.\w+)*)")


def own_code() -> Iterator[CodeType]:
    """The code of this package's functions that traced code may call, so far as their modules are imported."""
    named = [module for name, module in [*sys.modules.items()] if name.startswith(f"{_PACKAGE}.")]
    for module in [module for module in named if module.__file__ in OWN_FILES]:  # others may be lazy: asked, they wake
        values = [*vars(module).values()]
        values += [part for value in values if isinstance(value, type) for part in vars(value).values()]
        for value in values:
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(function, FunctionType) and function.__code__.co_filename in OWN_FILES:
                yield from with_inner(function.__code__)


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """That of a function, and of those that are defined in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from with_inner(const)


def forget_own_guards(output: Any) -> None:
    """Drop Dynamo's guards on the functions of this package, some thirty for each site: they stay what they are."""
    with contextlib.suppress(AttributeError):  # a torch that keeps its guards otherwise keeps these
        guards = output.guards.inner
        for guard in [guard for guard in guards if is_own(guard.name)]:
            guards.discard(guard)


def is_of_package(name: str) -> bool:
    """Is it, as guards name things, a module of this package, or an attribute of one?"""
    return _OWN.match(name) is not None


def is_own(name: str) -> bool:
    """Is it the name of a module or function of this package, or of a function's code?

    Dynamo gives an object the name by which it met it first: behind one of our modules there may be `torch`, and all
    that the program reads of it.  And `queue` holds what settings say, and whether this torch was understood.
    """
    found = _OWN.fullmatch(name)
    if found is None:
        return False
    home = found[1].replace("_dot_", ".") if found[1] else _RUNTIME
    owner: Any = sys.modules.get(home)
    for attribute in found[2].removesuffix(".__code__").split(".")[1:]:
        owner = getattr(owner, attribute, None)
        if isinstance(owner, FunctionType):
            home = owner.__module__
        elif isinstance(owner, ModuleType):
            home = owner.__name__
        else:
            return False
        if home.partition(".")[0] != _PACKAGE or home == _QUEUE:
            return False
    return owner is not None
