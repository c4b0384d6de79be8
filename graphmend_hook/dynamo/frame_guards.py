"""Guards of our own on the frame that is being compiled: Dynamo runs the code only while they hold."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .compilation import Compilation
from .own_guards import name_of
from .trace import log
from .trust import Mechanism, works

_numbers = itertools.count()


class Installed(set[object]):
    """What the guards of one compilation are about; each is installed once."""


def inputs_at(sources: Sequence[Any], compilation: Compilation) -> list[Any] | None:
    """What the expressions of guards give for the sources in the frame that is compiled; None where one fails.

    Dynamo would fail too.
    """
    if not works(Mechanism.GUARDS):
        return None
    root = compilation.output.root_tx
    scope = {"L": root.f_locals, "G": root.f_globals}
    try:
        return [eval(name_of(source), scope) for source in sources]
    except Exception as error:
        log.debug("no guard: %s", error)
        return None


def install(
    compilation: Compilation, key: object, sources: Sequence[Any], holds: Callable[..., bool], note: str
) -> None:
    """Let the code run only where `holds` is true of the values of the sources; once for each `key`."""
    from torch._dynamo.guards import install_guard
    from torch._dynamo.source import GlobalStateSource

    installed = compilation.of(Installed)
    if key not in installed:
        installed.add(key)
        install_guard(GlobalStateSource().make_guard(functools.partial(_build, sources, holds, note)))


def _build(sources: Sequence[Any], holds: Callable[..., bool], note: str, builder: Any, guard: Any) -> None:
    """What Dynamo calls when the graph is complete: adds the guard."""
    function = f"graphmend_guard_{next(_numbers)}"
    call = f"{function}({', '.join(map(name_of, sources))})"
    builder.add_python_lambda_leaf_guard_to_root([call], [f"{call}  # {note}"], {function: holds}, True)
