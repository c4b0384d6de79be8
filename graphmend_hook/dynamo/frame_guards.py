"""Guards of our own on the code that is being compiled: Dynamo runs it only while they hold."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .endings import name_of
from .tracer import log

_numbers = itertools.count()


def inputs_at(sources: Sequence[Any], root: Any) -> list[Any] | None:
    """What the expressions of guards give for the sources in the frame that is compiled; None where one fails.

    Dynamo would fail too.
    """
    scope = {"L": root.f_locals, "G": root.f_globals}
    try:
        return [eval(name_of(source), scope) for source in sources]
    except Exception as error:
        log.debug("no guard: %s", error)
        return None


def install(sources: Sequence[Any], holds: Callable[..., bool], note: str) -> None:
    """Let the code run only where `holds` is true of the values of the sources."""
    from torch._dynamo.guards import install_guard

    install_guard(sources[0].make_guard(functools.partial(_build, sources, holds, note)))


def _build(sources: Sequence[Any], holds: Callable[..., bool], note: str, builder: Any, guard: Any) -> None:
    """What Dynamo calls when the graph is complete: adds the guard."""
    function = f"graphmend_guard_{next(_numbers)}"
    call = f"{function}({', '.join(map(name_of, sources))})"
    builder.add_python_lambda_leaf_guard_to_root([call], [f"{call}  # {note}"], {function: holds}, True)
