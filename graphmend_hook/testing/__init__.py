"""Assertions about compiled code: that it is one graph, and that it does what eager does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..product.explain.in_process import explained
from ..product.explain.verdicts import PYTEST
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
    found = explained(fn_or_module, args, kwargs, backend, PYTEST)
    if found.graphs != 1 or found.breaks:
        text = f"expected one graph and no graph break, got {found}"
        if not found.breaks:
            text += (
                "\n  Dynamo traced no tensor operation: is the function disabled for torch.compile?"
                if found.graphs == 0
                else "\n  several frames were compiled: is it called through code that Dynamo does not trace?"
            )
        raise AssertionError(text)
    return found.result
