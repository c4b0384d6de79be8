"""Context managers that the program has made before: ``with self.timer:``.

Dynamo (2.12 to 2.15) enters one of the program's classes only where the frame makes it.  Its ``__enter__`` and
``__exit__`` are traced all the same; in mended code they are those of the object that it is.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from ..attempt.budget import is_spent_at
from .question import at_connection
from .tracer import covered_trace_at, is_caught
from .variables import Variable


@at_connection
def watch() -> None:
    """Stand where Dynamo enters a context, from now on."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    otherwise = getattr(InstructionTranslatorBase, "setup_or_before_with", None)
    if otherwise is None or hasattr(otherwise, "__wrapped__"):
        return

    @functools.wraps(otherwise)
    def enter(translator: Any, instruction: Any) -> None:
        trace = covered_trace_at(translator)
        if trace is not None and _is_held(translator.stack[-1]) and not is_caught(trace) and not is_spent_at(trace):
            translator.push(_kind_of_held()(translator.pop().realize()))
        otherwise(translator, instruction)

    InstructionTranslatorBase.setup_or_before_with = enter


def _is_held(variable: Variable) -> bool:
    """Is it an object of the program with both methods, as its class has them?"""
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    variable = variable.realize()
    kind = variable.value_type if type(variable) is UserDefinedObjectVariable else None
    return all(isinstance(getattr(kind, name, None), FunctionType) for name in ("__enter__", "__exit__"))


@functools.cache
def _kind_of_held() -> Any:
    """`HeldContextVariable`, whose base is Dynamo's; it takes seconds to import."""
    from torch._dynamo.variables.ctx_manager import GenericContextWrappingVariable

    class HeldContextVariable(GenericContextWrappingVariable):  # type: ignore[misc]
        """Such an object, `held`, of which Dynamo keeps what is stored to it."""

        _nonvar_fields = {"cm_obj", *GenericContextWrappingVariable._nonvar_fields}

        def __init__(self, held: Variable, **more: Any) -> None:
            super().__init__(held.value, **more)
            self.held = held

        def enter(self, translator: Any) -> Any:
            return self.held.call_method(translator, "__enter__", [], {})

        def exit(self, translator: Any, *args: Variable) -> Any:
            left = self.held.call_method(translator, "__exit__", [*args], {})
            translator.active_generic_context_managers.pop()
            return left

        def reconstruct(self, codegen: Any) -> None:
            codegen(self.held)

    return HeldContextVariable
