"""``print`` by whatever name it is called, and wherever: ``self.trace_func(text)``, ``verbose and print(text)``.

[Defer] rewrites statements that call `print` by its name.  Of every other call the trace tells what it calls, and its
frame does not matter: `print` looks at none.
"""

from __future__ import annotations

from typing import Any

from ...engine.door.question import at_connection
from ...engine.door.tracer import trace_at
from ...engine.door.variables import Variable
from ...engine.epilogue.deferral import tracing
from ...source.covered import is_under
from .traced import defer, deferrable

_RULE = "defer"


@at_connection
def watch() -> None:
    """Let Dynamo's builtin `print` wait for the end of the graph, in modules under the rule, from now on."""
    from torch._dynamo.variables.builtin import BuiltinVariable

    BuiltinVariable.call_print = _called  # where Dynamo looks for what it makes of a builtin of that name


def _called(_print: Variable, translator: Any, *values: Variable, **options: Variable) -> Any:
    """What `_shown` makes of the call; None where Dynamo is to break, as in stock."""
    from torch._dynamo.variables.base import VariableTracker

    trace = trace_at(translator)
    outside = None if trace is None else next(trace.frames_outside(), None)
    is_ours = translator.f_code is _shown.__code__  # which has refused it
    if outside is None or is_ours or not is_under(_RULE, outside.f_code, outside.f_globals):
        return None
    return translator.inline_user_function_return(VariableTracker.build(translator, _shown), [*values], options)


def _shown(*values: Any, **options: Any) -> None:
    """Traced in place of ``print(*values, **options)``."""
    given = ((*options,), *values, *options.values())
    if tracing() and deferrable(print, "", given):
        defer(_delivered, print, "", given)
    else:
        print(*values, **options)


def _delivered(target: Any, given: tuple[Any, ...]) -> None:
    names, *values = given
    count = len(values) - len(names)
    target(*values[:count], **dict(zip(names, values[count:], strict=True)))
