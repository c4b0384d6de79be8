"""Builtins of Python that Dynamo breaks at, and for which it traces a function of ours in modules that are mended."""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

from .tracer import is_under, trace_at
from .variables import Variable


def replace(builtin: BuiltinFunctionType, function: Callable[..., Any], rule: str) -> None:
    """Let Dynamo trace `function` in the place of `builtin`, which it knows nothing of, where the rule is on.

    The function may call the builtin: then Dynamo breaks, as in stock.
    """
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builtin import BuiltinVariable

    name = f"call_{builtin.__name__}"  # where Dynamo looks for what it makes of one
    if hasattr(BuiltinVariable, name):  # it was told before, or knows the builtin
        return

    def called(_builtin: Variable, translator: Any, *values: Variable, **options: Variable) -> Any:
        trace = trace_at(translator)
        if trace is None or translator.f_code is function.__code__ or not is_under(trace, rule):
            return None
        return translator.inline_user_function_return(VariableTracker.build(translator, function), [*values], options)

    setattr(BuiltinVariable, name, called)
    handlers = BuiltinVariable.call_function_handler_cache  # what Dynamo has found so far
    for key in [key for key in handlers if key[0] is builtin]:
        del handlers[key]
