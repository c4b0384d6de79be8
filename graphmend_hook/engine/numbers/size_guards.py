"""What a trace takes for granted of sizes that are symbols: guards, assertions, and the limits that the user has set.

A size that the user marks dynamic (`mark_dynamic`, ``dynamic_shapes=``) may not become a number, and PyTorch fails
hard where it does.  Without us a break keeps one piece of the frame from the sizes of the next, and what is not
reached takes nothing for granted.
"""

from __future__ import annotations

from typing import Any

from ..attempt.as_written import mending
from ..attempt.compilation import Compilation
from ..graph_end.order import Verdict

_BOUNDING = frozenset({"<", "<=", ">", ">=", "!="})


class SizeGuards:
    """Those that a trace has made so far."""

    def __init__(self, output: Any) -> None:
        self._shapes = output.shape_env
        self._guards, self._assertions = len(self._shapes.guards), self._shapes.num_deferred_runtime_asserts

    def have_grown(self) -> bool:
        """Has the trace taken more for granted since?"""
        return len(self._shapes.guards) > self._guards or self._shapes.num_deferred_runtime_asserts > self._assertions

    def have_fixed(self) -> bool:
        """Has a size become a number since, or that of another, or is something asserted that only the data knows?"""
        new = [guard.expr for guard in self._shapes.guards[self._guards :]]
        fixes = any(getattr(expression, "rel_op", "") not in _BOUNDING for expression in new)
        return fixes or self._shapes.num_deferred_runtime_asserts > self._assertions


def respect_limits(compilation: Compilation) -> None:
    """Trace the frame as it was written if a size is not what the user says that it may be."""
    compilation.judge(Verdict.SIZES, _judge)
    compilation.at_end(_judge)


def _judge(compilation: Compilation, end: object) -> None:
    """At the end of the graph, and of the attempt: a backend may fix a size, too."""
    bet = None if isinstance(end, BaseException) else mending(compilation)
    if bet and not _are_kept(compilation.output):
        compilation.without(bet, reason="a size is fixed that the user has marked as dynamic")


def _are_kept(output: Any) -> bool:
    """Are all limits kept?  Dynamo asks when it makes the guards of the frame: too late to trace it anew."""
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    tracked = output.shape_env.tracked_fakes or []
    contexts = [one.symbolic_context for one in tracked]
    if not any(any(getattr(context, "constraint_sizes", None) or ()) for context in contexts):
        return True
    fakes, sources = [one.fake for one in tracked], [one.source for one in tracked]
    try:
        output.shape_env.produce_guards(fakes, sources, input_contexts=contexts)
    except ConstraintViolationError:
        return False
    return True
