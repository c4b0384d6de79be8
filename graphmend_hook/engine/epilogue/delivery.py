"""The epilogue: what generated code calls, to deliver what waits for the end of its graph, and to run its frame again.

Deferred calls are made after the graph, after a graph that raised, and out of a list that was left behind.  A frame is
run again with its arguments, cells and random numbers.  Imports Dynamo, and only when something is first deferred.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import logging
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch._dynamo import convert_frame
from torch._dynamo.decorators import skip
from torch._dynamo.eval_frame import set_eval_frame
from torch.fx import graph_module
from torch.utils._pytree import tree_iter

from ...diagnostics import notice
from ...version import __version__
from ..attempt import defects
from ..attempt.compilation import attempts_now, memory_of
from ..predicates import read
from . import queue
from .bytecode import BEFORE, Rerun, announced, is_run_again, redirect_replay
from .rerun import Plan, RerunMemory
from .rollback import Before

log = logging.getLogger("graphmend_hook")
_OF_GUARD = "graphmend_hook: raised at the end of the compiled graph that the guard is in"
_OF_GUARD_AGAIN = (
    "graphmend_hook: raised by the function as it was written, after a guard in its compiled graph had failed"
)
_OF_RERUN = "graphmend_hook: raised by the function as it was written, after its compiled graph had failed with"
# Exceptions that say that enough has been computed.
_ORDERS = frozenset({"torch.utils.checkpoint._StopRecomputationError"})


@functools.cache
def connect() -> None:
    """Register with Dynamo; runs while the first deferred effect is being traced, before its code is generated.

    Dynamo lets one thread trace at a time.
    """
    queue.graphmend_sink = _slot(deliver)
    queue.graphmend_failed = _Failed()
    queue.graphmend_distrust = _slot(_distrust)
    handle = convert_frame.register_bytecode_hook(on_generated_code)
    # Hooks of the program's own may keep what they are given, to run it later; they are given what delivers.
    convert_frame._bytecode_hooks.move_to_end(handle.id, last=False)
    vars(graph_module)["print"] = _print_of_graphs
    atexit.register(drain)


def _print_of_graphs(*values: object, **options: Any) -> None:
    """How `torch.fx` prints: not where a graph has failed whose frame is run again, which says so itself.

    A graph that a backend gives as it is prints how it has failed, whoever may catch that.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_run_again(frame.f_code):
        frame = frame.f_back
    if frame is None:
        print(*values, **options)


def _unseen(function: Callable[..., Any]) -> Any:
    """A method that calls the function, of which Dynamo sees nothing.

    It is called from code that runs under Dynamo, which would compile the very first Python function it meets there;
    so that one is skipped, and nothing below it is looked at.  (`torch.compiler.disable` takes three times as long.)
    """

    def method(*args: Any) -> Any:
        prior = set_eval_frame(None)
        try:
            return function(*args)
        finally:
            set_eval_frame(prior)

    return skip(method)


def _slot(receive: Callable[[Any], None]) -> Any:
    """An object whose item assignment calls `receive`."""
    return type("Slot", (), {"__setitem__": _unseen(lambda _slot, _key, value: receive(value))})()


def on_generated_code(original: CodeType, generated: CodeType) -> CodeType | None:
    """Dynamo's bytecode hook: the code to run instead of `generated`, None to run that.

    Generated code that is not understood is not run at all: it may deliver nothing, or nothing where its graph fails.
    The code as it was written does all that at once.
    """
    try:
        plan = _plan()
        guards = _Guards(plan.reruns_guards) if plan.has_guards else None
        return redirect_replay(generated, prepared(original), plan.has_graph, plan.switches, guards)
    except Exception as error:
        log.debug("generated code of %s not understood: %s", generated.co_name, error)
    try:
        return announced(original, queue.graphmend_distrust)
    except Exception as error:  # a Python that the `bytecode` library does not know
        log.debug("nor is that of the function itself: %s", error)
        _distrust(None)
        return original.replace()  # not the original, which Dynamo would take for generated code from now on


def _distrust(_nothing: None) -> None:
    """From now on no trace relies on generated code, and what did is traced anew at its next call.

    That is said by the code that runs instead: Dynamo, which guards `understood`, takes its value after the hooks.
    """
    if queue.understood:
        queue.understood = False
        log.warning("%s", notice("GM005", torch=torch.__version__, version=__version__))


def prepared(code: CodeType) -> Rerun | None:
    """What runs the frame of `code`, of which code has just been generated, again; None if it may not be."""
    plan = _plan()
    return None if plan.draws is None else _Frame(code, plan)


def _plan() -> Plan:
    """How the frame of which code is being generated is run again."""
    made = attempts_now().made
    return Plan() if made is None else made.of(Plan)


def deliver(items: list[queue.Item], held: list[bool] | None = None) -> None:
    """Make the calls, in the order in which eager would have made them, those under a condition only if it held.

    held: which of them are to be made, where that is known.

    What a call raises (a guard's exception, a warning that is an error by now) leaves the compiled function, and ends
    the delivery as it would have ended the function.
    """
    for item, holds in zip(items, _held(items) if held is None else held, strict=True):
        if item[0] is queue.ITEM:
            item[1](item[2], [*map(queue.now, item[3:])])
        elif holds:
            _, _, delivery, target, *values = item
            try:
                delivery(target, [*map(queue.now, values)])
            except Exception as error:
                if item[0] in queue.GUARDS:
                    _annotate(error, _OF_GUARD)
                raise


def _held(items: list[queue.Item]) -> list[bool]:
    """Which of the calls are to be made: those without a condition, and those whose condition holds."""
    conditions = [item[1] for item in items if item[0] is not queue.ITEM]
    held = iter(_read_all(conditions) if conditions else ())
    return [item[0] is queue.ITEM or next(held) for item in items]


class GuardFailedError(Exception):
    """A guard in the graph has failed: the frame is run again, and raises by itself."""

    def __init__(self, items: list[queue.Item], held: list[bool]) -> None:
        super().__init__(_OF_GUARD)
        self.items, self.held = items, held


def _look(guards: _Guards, items: list[queue.Item]) -> Any:
    """The sink of the items, if all guards among them hold; right behind the graph, before anything is replayed.

    If one has failed, the frame is run again; or else it raises here, if it stands before all that is to be replayed;
    or else behind all that, as an effect does.
    """
    held = _held(items)
    failed = next((place for place, item in enumerate(items) if held[place] and item[0] in queue.GUARDS), None)
    if failed is not None and guards.runs_again:
        raise GuardFailedError(items, held)
    if failed is not None and items[failed][0] is queue.FIRST_GUARD:
        deliver(items[: failed + 1], held[: failed + 1])
    return _slot(functools.partial(deliver, held=held))


class _Guards:
    """What generated code hands the items to, to look at the guards among them; is the frame run again for them?"""

    def __init__(self, runs_again: bool) -> None:
        self.runs_again = runs_again

    __getitem__ = _unseen(_look)


class _Failed:
    """What generated code asks for the modes before its graph, and hands what was deferred if that has failed."""

    __getitem__ = _unseen(lambda _slot, _key: Before())
    __setitem__ = _unseen(lambda _slot, before, items: _take_failed(before, items))


def _take_failed(before: Before | None, items: list[queue.Item]) -> None:
    if before is not None:
        before.restore_modes(sys.exc_info()[1])
    deliver_after_failure(items)


def deliver_after_failure(items: list[queue.Item]) -> None:
    """Make the calls whose values exist although the graph raised; say that it did, and how many calls are lost.

    That is where its frame may not run again.  Which of the calls eager would have reached before the operation that
    failed cannot be told, so none is held back.
    """
    if _is_order(sys.exc_info()[1]):
        return
    try:
        complete = _complete(items)
    except Exception as error:
        defects.report("what is deferred in a graph that raised", error)
        return
    deliver(complete)


def _complete(items: list[queue.Item]) -> list[queue.Item]:
    """The effects of which all values exist."""
    known = [item for item in items if item[0] not in queue.GUARDS]
    complete = [item for item in known if not any(value is queue.MISSING for value in tree_iter(item))]
    lost = len(known) - len(complete)
    if lost or complete:
        log.warning("%s", notice("GM006", error=type(sys.exc_info()[1]).__name__, count=len(complete), lost=lost))
    return complete


def _annotate(error: Exception, note: str) -> None:
    """Add a note to it, if Python has notes, and if it can take one: an exception may be frozen."""
    if sys.version_info >= (3, 11):
        with contextlib.suppress(Exception):
            error.add_note(note)


def _read_all(predicates: list[torch.Tensor]) -> list[bool]:
    """The values of tensors () of bool."""
    try:
        return read(predicates)
    except Exception as error:
        values = [bool(predicate) for predicate in predicates]  # that may raise for a reason of the program's
        defects.report("reading conditions together", error)
        return values


def drain() -> None:
    """Deliver what a replay left in the list: generated code that the bytecode hook could not redirect."""
    while queue.graphmend_pending:
        items = list(queue.graphmend_pending)
        queue.graphmend_pending.clear()
        deliver(items)


def _item(frame: _Frame, given: tuple[list[queue.Item], tuple[CellType, ...]] | None) -> Any:
    """The state before the graph, or what runs the frame that this is called from again, for its item."""
    caller = sys._getframe(2)  # past `_unseen`
    if given is None:
        return frame.state_before(caller)
    failed, again = sys.exc_info()[1], None
    assert failed is not None
    try:
        again = _again(frame.code, caller, given[1], failed)
    except Exception as error:
        defects.report("running the frame of a graph that raised again", error)
    if again is not None:
        return _Again(again, frame.code, None if isinstance(failed, GuardFailedError) else _words(failed))
    if isinstance(failed, GuardFailedError):
        deliver(failed.items, failed.held)
    deliver_after_failure(given[0])
    raise failed


class _Frame(Rerun):
    """That of the generated code which asks for an item."""

    def __init__(self, code: CodeType, plan: Plan) -> None:
        assert plan.draws is not None
        super().__init__(code, bool(plan.draws or plan.draws_in_python or plan.written))
        self._plan, self._draws = plan, plan.draws

    def state_before(self, caller: FrameType) -> Before:
        """That before the graph which the caller is about to call."""
        scope = {"L": caller.f_locals, "G": caller.f_globals}
        written = [] if self._plan.written is None else eval(self._plan.written, scope)
        return Before(self._draws, self._plan.draws_in_python, written)

    __getitem__ = _unseen(_item)


def _again(
    code: CodeType, frame: FrameType, cells: tuple[CellType, ...], failed: BaseException
) -> Callable[[], Any] | None:
    """What runs the frame of which the graph has failed again, in the state before; None if that is no help."""
    values, names = frame.f_locals, inspect.getargs(code)
    before = values.get(BEFORE)
    # Where there is no memory for the graph there is none for eager, and an interrupt is one.
    is_final = isinstance(failed, torch.cuda.OutOfMemoryError) or _is_order(failed)
    may_help = isinstance(failed, Exception) and not is_final
    if not may_help or not {*names.args, *filter(None, names[1:])} <= {*values}:
        if before is not None:
            before.restore_modes(failed)
        return None
    positional = [values[name] for name in names.args[: code.co_argcount]]
    keywords = {name: values[name] for name in names.args[code.co_argcount :]}
    if names.varargs:
        positional += values[names.varargs]
    if names.varkw:
        keywords |= values[names.varkw]
    if before is not None:
        before.restore(failed)
    function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
    return functools.partial(function, *positional, **keywords)


def _is_order(error: BaseException | None) -> bool:
    """Does it end the graph because no more of it is wanted, as an activation checkpoint does that is recomputed?"""
    return f"{type(error).__module__}.{type(error).__qualname__}" in _ORDERS


def _run(again: _Again) -> Any:
    """What the frame gives as it was written, whose graph, or a guard in it, has failed."""
    try:
        value = again.function()
    except Exception as error:
        _annotate(error, _OF_GUARD_AGAIN if again.said is None else f"{_OF_RERUN} {again.said}")
        raise
    name = getattr(again.code, "co_qualname", again.code.co_name)
    if again.said is None:  # the graph has rounded otherwise than eager
        log.debug("a guard has failed in the graph of %s, and holds in eager", name)
        return value
    log.warning("%s", notice("GM009", function=name, error=again.said))
    memory = memory_of(again.code).of(RerunMemory)
    memory.failures, memory.said = memory.failures + 1, again.said
    return value


@dataclass
class _Again:
    """What runs a frame again when it is asked for an item.

    said: by the failure of its graph, None for that of a guard.
    """

    function: Callable[[], Any]
    code: CodeType
    said: str | None

    __getitem__ = _unseen(lambda again, _key: _run(again))


def _words(error: BaseException) -> str:
    """What Python says of it at the end of a traceback, also where its own text fails."""
    return "".join(traceback.format_exception_only(error)).strip()
