"""Assertions about compiled code: that it is one graph, and that it does what eager does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..explain.join import Break, Verdicts, breaks_of
from ..explain.observe import Observer
from ..reporting.text import counted
from .equality import assert_same_as_eager

__all__ = ["assert_same_as_eager", "assert_single_graph"]


def assert_single_graph(fn_or_module: Callable[..., Any], /, *args: Any, backend: Any = "eager", **kwargs: Any) -> Any:
    """Compile `fn_or_module`, call it once, and give its result.

    backend: the name of a `torch.compile` backend, or a callable of that kind.
    Raises AssertionError unless Dynamo made exactly one graph of the call, with no break before or after it.  The text
    has each break with its line, Dynamo's reason, and what graphmend_hook says about it.  What the call itself raises
    passes through.

    Everything that was compiled before in this process is forgotten, or Dynamo would count the calls of other tests
    towards its recompile limit.
    """
    __tracebackhide__ = True
    import torch

    observer = Observer()
    torch.compiler.reset()
    try:
        with observer.attached():
            result = torch.compile(fn_or_module, backend=backend)(*args, **kwargs)
    finally:
        torch.compiler.reset()
    if observer.count != 1 or observer.breaks:
        seen = observer.as_json()
        verdicts = Verdicts(seen["report"], "pytest --graphmend")
        raise AssertionError(_text(observer.count, list(breaks_of([], seen["breaks"], verdicts))))
    return result


def _text(graphs: int, breaks: list[Break]) -> str:
    got = f"{counted(graphs, 'graph')} and {counted(len(breaks), 'graph break')}"
    lines = [f"expected one graph and no graph break, got {got}"]
    for found in breaks:
        lines += [
            f"  {found.file}:{found.line} in {found.function}: {found.text}",
            f"    Dynamo: {found.headline}",
            f"    graphmend: {found.code}{found.code and ' '}{found.said}",
        ]
        if found.advice:
            lines.append(f"    -> {found.advice}")
    if not breaks:
        lines.append(
            "  Dynamo traced no tensor operation: is the function disabled for torch.compile?"
            if graphs == 0
            else "  several frames were compiled: is it called through code that Dynamo does not trace?"
        )
    return "\n".join(lines)
