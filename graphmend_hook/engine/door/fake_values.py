"""The place where Dynamo runs each operation on fake tensors, to know what it gives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .question import at_connection

Calculate = Callable[[], Any]
Around = Callable[[Any, torch.fx.Node, Calculate], Any]
_around: list[Around] = []


def around(function: Around) -> Around:
    """Call `function` for each operation: with Dynamo's translator, the node, and what gives the fake value."""
    _around.append(function)
    return function


@at_connection
def watch() -> None:
    """Stand around it from now on."""
    from torch._dynamo.variables import builder

    original = builder.get_fake_value
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def get_fake_value(node: torch.fx.Node, translator: Any, *args: Any, **kwargs: Any) -> Any:
        calculate: Calculate = functools.partial(original, node, translator, *args, **kwargs)
        for function in _around:
            calculate = functools.partial(function, translator, node, calculate)
        return calculate()

    builder.get_fake_value = get_fake_value
