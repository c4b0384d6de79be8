"""[Defer] Logging, warnings and prints are delivered after the graph instead of breaking it.

What it does
    A statement that calls ``print``, ``warnings.warn``, or a method of a logger hands its arguments to the epilogue
    while Dynamo traces; the epilogue makes the original call right after the graph, on the same thread, from a frame
    with the statement's file, line and function.

Why Dynamo breaks there
    The call has an effect outside the graph, at a moment that a graph does not have: "logging.Logger method not
    supported for non-export cases", "Dynamo does not know how to trace builtin `print`/`_warnings.warn`".

Before
    logger.warning_once(f"{name} has shape {x.shape}")

After
    if GM.tracing():                                   # folded while tracing; one Python call otherwise
        TARGET = logger                                # receiver and arguments, as of the call, once each
        VALUES = (name, x.shape)
        if GM.deferrable(TARGET, "warning_once", VALUES):
            GM.defer(lambda TARGET, VALUES: TARGET.warning_once(f"{VALUES[0]} has ..."), TARGET, "warning_once", VALUES)
        else:
            TARGET.warning_once(f"{VALUES[0]} has shape {VALUES[1]}")
    else:
        logger.warning_once(f"{name} has shape {x.shape}")

    What an argument computes of texts, numbers and lengths (``self.step + 1``) becomes ``GM.late(lambda step: step + 1,
    (self.step,), ...)``: it is computed at the delivery where the trace need not look at it (`late`).

    ``name = logging.getLogger(...)`` in a function, which Dynamo cannot trace, becomes ``GM.get_logger(...)``, a
    constant of the trace.

    ``self.losses.append(loss.item())`` (`kept`) appends behind the graph, where nothing traced looks at the list.

Obligations
    `codes` has them.  Those checked while tracing fall back to the original statement (`traced`).

The native alternative, and what it loses
    ``torch._dynamo.config.reorderable_logging_functions`` loses every call in an inlined frame;
    ``ignore_logging_functions`` drops the record.
"""

from __future__ import annotations

import ast
import re

from ...diagnostics import Refusal
from ...source.scopes import ModuleScope, Place
from ...source.templates import Template
from ..base import Ready
from . import calls, kept
from .codes import READS_CLOCK, VALUE_USED
from .known_calls import CLOCKS, LOGGER_METHODS

_LOOKED_UP = Template(
    """
if GM.tracing():
    STORED = LOOKUP
else:
    ORIGINAL
"""
)

USED = Refusal(VALUE_USED, "the call's value is used; make the call a statement of its own")


CLOCK = Refusal(
    READS_CLOCK, "a clock is read that gives no number, and a graph has no moment to do so; read `time.time()`"
)


class Defer:
    """Rewrites effect statements; see the module's docstring."""

    name = "defer"
    version = 21
    fallback = False
    triggers = (
        re.compile(rb"print\b"),
        re.compile(rb"warn\b"),
        re.compile(rb"\.(?:" + "|".join(sorted(LOGGER_METHODS)).encode() + rb")\s*\("),
        re.compile(rb"logging\.getLogger"),
        re.compile(rb"from\s+logging\s+import"),
        re.compile(rb"\.append\("),
        re.compile(rb"\.update\("),
        re.compile(rb"\+=\s*\["),
        re.compile(rb"\b(?:absl|structlog|tqdm)\b"),
    )

    def match(self, place: Place, scope: ModuleScope) -> calls.EffectCall | Ready | Refusal | None:
        statement = place.statement
        if isinstance(statement, ast.Expr):
            return calls.effect_of(place, scope) or kept.match(place, statement, scope)
        if isinstance(statement, ast.AugAssign):
            return kept.match_sum(place, statement, scope)
        if not isinstance(statement, (ast.Assign, ast.Return)) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        if isinstance(statement, ast.Assign):
            if calls.is_lookup(place, call, scope):
                return _looked_up(statement, call)
            if scope.names_one_of(call.func, CLOCKS, place.function):
                return CLOCK
        return USED if calls.is_known_function(place, call, scope) else None


def _looked_up(statement: ast.Assign, call: ast.Call) -> Ready | None:
    """``name = logging.getLogger(...)``: Dynamo cannot trace the lookup, which has one result for ever."""
    if len(statement.targets) > 1 or not isinstance(statement.targets[0], ast.Name):
        return None
    looked_up = calls.lookup(statement, call)
    return Ready(_LOOKED_UP.fill(statement, STORED=statement.targets[0], LOOKUP=looked_up, ORIGINAL=statement))
