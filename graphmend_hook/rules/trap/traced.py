"""Effects and guards under a condition that is a tensor: what they become in the graph, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...engine.attempt import refusals
from ...engine.attempt.as_written import is_as_written
from ...engine.attempt.attempt import STATEMENT
from ...engine.attempt.restart import expect_no_handler, expect_success
from ...engine.door.question import in_trace, question
from ...engine.door.torch_modes import Modes
from ...engine.door.trace_state import has_stored_nothing
from ...engine.door.tracer import Trace, is_told_of_failures
from ...engine.door.unguarded import has_tensor
from ...engine.epilogue import deferral, queue
from ...engine.epilogue.rerun import expect_failure, keep
from ...engine.numbers import number_tensors
from ..defer import traced as effects
from ..defer.codes import HANDLER_AROUND, NO_EPILOGUE, REDIRECTED
from ..defer.traced_kept import APPENDS, NEW, appended, why_not_kept
from ..defer.traced_texts import kept as kept_now
from ..shared import traced_sides
from ..shared.traced_conditions import compiling, has_truth, is_left_alone, truth, undecided
from ..shared.traced_sides import Unspeculable
from ..where.codes import HARMFUL
from .codes import GUARDS_KEPT

# Dynamo's variables for contexts of gradients, inference and autocast, and for one that does nothing.
_SWITCHING = ("GradModeVariable", "InferenceModeVariable", "AutocastModeVariable", "NullContextVariable")
# Where the known check functions are defined.
_CHECK_MODULES = ("torch", "torch._utils", "transformers.utils.import_utils")
# Where an assertion in a graph that fails is an exception, and no more.
HOSTS = ("cpu", "meta")


def is_check(function: Any) -> bool:
    """Is it one of the known functions that raise if a condition does not hold?"""
    if in_trace():
        return traced_sides.is_defined_in(function, _CHECK_MODULES)
    return getattr(function, "__module__", "") in _CHECK_MODULES


def asserted(value: Any, reads: bool) -> Any:
    """The condition of an ``assert`` that is traced.

    Of a tensor Dynamo makes an assertion that no ``except`` of the program catches, and behind which the trace goes on
    to what may fail there.  So none may stand around it, and the trace has to succeed, or all is as it was written.

    On a device it would end the process's use of that; there the graph breaks, and Python looks at the tensor.

    reads: does the test, as it was written, read a tensor by itself (``bool(x)``), and break the graph?
    """
    if not in_trace():
        return value if compiling() and not reads else bool(value)  # where nothing is exported, behind that break
    if isinstance(value, torch.Tensor):
        expect_no_handler()
        expect_success()
        if (reads and is_left_alone()) or (value.device.type not in HOSTS and may_break()):
            return bool(value)
    return value


def spared(test: Any, raises: bool) -> bool | None:
    """The truth of a test under which the branch does not raise; from here on the graph has a guard that it is so.

    None where the test is no tensor, or the function cannot be run again as it was written if it turns out otherwise.

    raises: the truth under which the branch raises.
    """
    if not in_trace() or not undecided(test) or not has_truth(test):
        return None
    return not raises if expect_false(truth(test) if raises else ~truth(test)) else None


_TELLING = (
    (torch.linalg.cholesky, torch.linalg.cholesky_ex),
    (torch.linalg.inv, torch.linalg.inv_ex),
    (torch.inverse, torch.linalg.inv_ex),
    (torch.linalg.solve, torch.linalg.solve_ex),
)


def tried(function: Any, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a factorisation gives, with what it says of itself; that it did not fail is a guard from now on.

    None where it cannot be guarded: then the `try` stands as it was written.
    """
    if (
        not in_trace()
        or deferral.is_transformed()
        or deferral.is_autocast()
        or not isinstance(operands[0], torch.Tensor)
    ):
        return None
    for known, telling in _TELLING:
        if function is known:
            given = telling(*operands, **options)
            failed = (given[1] != 0).any()
            return given if has_truth(failed) and expect_false(truth(failed)) else None
    return None


def expect_false(predicate: torch.Tensor) -> bool:
    """Guard that the predicate, a tensor () of bool, is false: else the frame is run again as it was written.

    False where it cannot be, or no guard may wait for the end of the graph here.
    """
    in_graph = queue.guards == "async" or deferral.guards_are_assertions()
    refusal = NO_EPILOGUE if in_graph else _refusal(None, None, (), False)
    if refusal or not _runs_again():
        effects.record(refusal or HARMFUL)
        return False
    text = "graphmend_hook: the function cannot be run again"
    effects.append((queue.GUARD, kept_now(predicate), _raise_late, text), is_guard=True)
    return True


number_tensors.guard_with(expect_false)


def _raise_late(text: str, _values: object) -> None:
    raise RuntimeError(text)


@question(otherwise=True)
def may_break(trace: Trace) -> bool:
    """May the graph end here?  Under ``fullgraph=True`` it may not."""
    return not trace.compilation.one_graph


@question(otherwise=False)
def _runs_again(trace: Trace) -> bool:
    """Is the frame run again if the guard at hand fails?  Else it is traced anew, without the guard."""
    if is_as_written(trace) or traced_sides.is_harmful(trace):
        return False
    refusals.withdraw(trace.place)
    _leave_unless_run_again(trace, "a guard fails in a function that cannot be run again")
    return True


@question(otherwise=None)
def _needs_rerun(trace: Trace) -> None:
    """Dynamo keeps no values in between: what is stored before a guard is not told from what is stored behind."""
    _leave_unless_run_again(trace, "the function stores before a guard, and cannot be run again where the guard fails")


def _leave_unless_run_again(trace: Trace, reason: str) -> None:
    """Leave the statement at hand as it was written if the frame turns out not to be run again where a guard fails."""
    line = trace.line
    keep(trace.compilation).otherwise_guarded.add(lambda end: end.without(STATEMENT.at(line), reason=reason))


def commit(every: Sequence[tuple[Any, ...]]) -> None:
    """Leave the effects and guards of both sides for the end of the graph; raises Unspeculable if one may not wait.

    every: (predicate, method, delivery, target, values); `method` is None for a guard, whose target is its text,
        one of `APPENDS` for an append to the target, "." for an attribute of the target that is created, and `JUDGED`
        for what was judged where it stands.
    In a function that a side of a branch calls they are left to that side, and judged here and there.
    """
    side = effects.effects_around()
    in_program = deferral.guards_are_assertions()
    in_graph = queue.guards == "async" or in_program
    for _, method, _, target, values in every:
        is_judged_there = side is not None and method in APPENDS  # which is noted
        refusal = "" if is_judged_there else _refusal(method, target, values, in_graph)
        if refusal:
            raise Unspeculable(refusal)
    if side is not None:
        side.extend(every)
        return
    for predicate, method, delivery, target, values in every:
        if method is None and in_graph:
            deferral.assert_in_graph(~predicate, target)
            if in_program:
                deferral.tell_of_assertions()
                expect_failure()
            continue
        kind = queue.EFFECT
        if method is None:
            kind = queue.FIRST_GUARD if _stands_first() else queue.GUARD
            if kind is queue.GUARD:
                _needs_rerun()
        is_within = method is None and deferral.is_in_a_context()
        call = (_within(), (delivery, target)) if is_within else (delivery, target)
        effects.append((kind, kept_now(predicate), *call, *_kept(method, values)), is_guard=method is None)


def _kept(method: str | None, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if method == effects.JUDGED:
        return values
    return tuple([appended(value, method == NEW) if method in APPENDS else kept_now(value) for value in values])


def _refusal(method: str | None, target: Any, values: tuple[Any, ...], in_graph: bool) -> str:
    if method in APPENDS:
        return why_not_kept(target, values, method == NEW) if deferral.tracing() else NO_EPILOGUE
    if method in (".", effects.JUDGED):
        shown = values if method == "." else ()
        return effects.refusal_here(False, shown, False) if deferral.tracing() else NO_EPILOGUE
    if method is not None:
        return effects.refusal(target, method, values) if deferral.tracing() else NO_EPILOGUE
    if queue.guards == "keep":
        return GUARDS_KEPT
    if _is_in_another_context() and has_tensor(values):
        return REDIRECTED  # it ends before the text is made
    if in_graph:
        return ""
    return HANDLER_AROUND if _is_told_of() else effects.refusal_here(False, values, False)


class _Within:
    """Executes the statement of a guard, whose text may compute something, in the modes that the guard stands in."""

    def __init__(self) -> None:
        self._modes = Modes()

    def __call__(self, target: tuple[Callable[[Any, Any], None], Any], values: Any) -> None:
        delivery, its_target = target
        with self._modes.entered():
            delivery(its_target, values)


@question(otherwise=None)
def _within(trace: Trace) -> Any:
    return deferral.constant_of(trace, _Within(), "graphmend_modes")


@question(otherwise=True)
def _is_in_another_context(trace: Trace) -> bool:
    """Is a context manager open that does more than to switch modes which can be entered again?"""
    return any(type(context).__name__ not in _SWITCHING for context in trace.contexts())


@question(otherwise=False)
def _stands_first(trace: Trace) -> bool:
    """Has the trace done nothing so far that is replayed after the graph, but to defer effects?"""
    return has_stored_nothing(trace)


@question(otherwise=True)
def _is_told_of(trace: Trace) -> bool:
    """May traced code around the guard do something else where it fails?"""
    return is_told_of_failures(trace)
