"""Builtins of Python that Dynamo breaks at, and for which it traces a function of ours in modules that are mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...source.covered import is_under
from .tracer import trace_at
from .variables import Variable


def replace(builtin: Callable[..., Any], function: Callable[..., Any], rule: str) -> None:
    """Let Dynamo trace `function` in the place of `builtin`, which it knows nothing of, where the rule is on.

    The function may call the builtin: then Dynamo breaks, as in stock.
    """
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builtin import BuiltinVariable

    def called(_builtin: Variable, translator: Any, *values: Variable, **options: Variable) -> Any:
        trace = trace_at(translator)
        outside = None if trace is None else next(trace.frames_outside(), None)
        is_within = translator.f_code is function.__code__
        if outside is None or is_within or not is_under(rule, outside.f_code, outside.f_globals):
            return None
        return translator.inline_user_function_return(VariableTracker.build(translator, function), [*values], options)

    setattr(BuiltinVariable, f"call_{builtin.__name__}", called)  # where Dynamo looks for what it makes of one
