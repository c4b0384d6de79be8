"""The assertion that a callable is captured as one graph, and the text that says why it is not."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from .capture import Break, Capture, capture


def assert_single_graph(fn_or_module: Callable[..., Any], /, *args: Any, backend: Any = "eager", **kwargs: Any) -> Any:
    """Compile `fn_or_module`, call it once, and give its result.

    backend: the name of a `torch.compile` backend, or a callable of that kind.
    Raises AssertionError unless Dynamo made exactly one graph of the call, with no break before or after it.  The text
    has each break with its line, Dynamo's reason, and what graphmend_hook says about it.  What the call itself raises
    passes through.
    """
    __tracebackhide__ = True
    captured = capture(fn_or_module, args, kwargs, backend)
    if captured.graphs != 1 or captured.breaks:
        raise AssertionError(_text(captured))
    return captured.result


def _text(captured: Capture) -> str:
    from ..reporting.text import counted

    graphs, breaks = captured.graphs, len(captured.breaks)
    lines = [
        f"expected one graph and no graph break, got {counted(graphs, 'graph')} and {counted(breaks, 'graph break')}"
    ]
    for found in captured.breaks:
        lines += _described(found)
    if not breaks:
        lines.append(
            "  Dynamo traced no tensor operation: is the function disabled for torch.compile?"
            if graphs == 0
            else "  several frames were compiled: is it called through code that Dynamo does not trace?"
        )
    return "\n".join(lines)


def _described(found: Break) -> list[str]:
    from ..reporting.ledger import ledger
    from ..reporting.verdict import verdict

    source = linecache.getline(found.path, found.line).strip()
    return [
        f"  {found.path}:{found.line} in {found.function}{source and ': '}{source}",
        f"    Dynamo: {found.reason}",
        f"    graphmend: {verdict(ledger, found.path, found.line)}",
    ]
