"""``print`` by whatever name it is called, and wherever: ``self.trace_func(text)``, ``verbose and print(text)``.

[Defer] rewrites statements that call `print` by its name.  Of every other call the trace tells what it calls, and its
frame does not matter: `print` looks at none.
"""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from ...engine.door.question import at_connection
from ...engine.door.replaced_builtins import replace
from ...engine.epilogue.deferral import tracing
from .traced import PRINT, defer, deferrable

_OPTIONS = ("end", "file", "flush", "sep")


def _shown(*values: Any, **options: Any) -> None:
    """Traced in place of ``print(*values, **options)``; the program may call something else by that name."""
    given = ((*options,), *values, *options.values())
    if _is_right(options) and tracing() and deferrable(PRINT, "", given):
        defer(_delivered, PRINT, "", given)
    else:
        PRINT(*values, **options)


def _is_right(options: dict[str, Any]) -> bool:
    """Does `print` take them, whatever it shows?  What it refuses it refuses where it stands."""
    for name, value in options.items():
        if name not in _OPTIONS or (name in ("end", "sep") and not isinstance(value, (str, type(None)))):
            return False
    return options.get("file") is None


@at_connection
def watch() -> None:
    """Let Dynamo's builtin `print` wait for the end of the graph, in modules under the rule, from now on."""
    if isinstance(PRINT, BuiltinFunctionType):  # else a program had replaced it before this package was there
        replace(PRINT, _shown, "defer")


def _delivered(target: Any, given: tuple[Any, ...]) -> None:
    names, *values = given
    count = len(values) - len(names)
    target(*values[:count], **dict(zip(names, values[count:], strict=True)))
