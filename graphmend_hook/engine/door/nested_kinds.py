"""``isinstance(shear, (Number, (list, tuple)))``: up to torch 2.14 Dynamo raises a TypeError for a tuple in a tuple."""

from __future__ import annotations

import functools
from typing import Any

from .question import at_connection
from .tracer import covered_trace_at
from .variables import Variable, kinds_in


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo answers `isinstance`, from now on."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    otherwise = getattr(BuiltinVariable, "call_isinstance", None)
    if otherwise is None:  # another torch has that elsewhere
        return

    @functools.wraps(otherwise)
    def call_isinstance(builtin: Any, translator: Any, asked: Variable, kinds: Variable) -> Any:
        if kinds.is_python_constant() and covered_trace_at(translator) is not None:
            kinds = _flat(translator, kinds)
        return otherwise(builtin, translator, asked, kinds)

    BuiltinVariable.call_isinstance = call_isinstance


def _flat(translator: Any, kinds: Variable) -> Variable:
    from torch._dynamo.variables.base import VariableTracker

    found = kinds.as_python_constant()
    if not isinstance(found, tuple) or not any(isinstance(each, tuple) for each in found):
        return kinds
    return VariableTracker.build(translator, tuple(kinds_in(found)))
