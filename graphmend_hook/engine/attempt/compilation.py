"""What is known of a frame that Dynamo compiles: of one attempt, of all attempts of a compilation, and from then on.

Each holds typed parts, which the rules declare beside their logic: ``compilation.of(Kind)`` is the attempt's own
instance of the class, made when it is first asked for.  `compilation_of` is the one place where all three are made.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Hashable
from types import CodeType
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch._guards import CompileContext
from torch.utils.weak import WeakIdKeyDictionary

from ..door.own_code import forget_own_guards
from ..graph_end.order import Change, GraphEnd, Look, Verdict, Wrap, Wrapper
from . import defects, refusals
from .attempt import Bet, EveryFrame, Feature, Ledger, Lifetime, UselessRetreatError

log = logging.getLogger("graphmend_hook.trace")
Part = TypeVar("Part")
End = Callable[["Compilation", "BaseException | None"], None]


class NotTracingError(Exception):
    """Nothing is being compiled here."""


class Parts:
    """One instance of each class that is asked for."""

    def __init__(self) -> None:
        self._parts: dict[type, Any] = {}

    def __contains__(self, kind: type) -> bool:
        """Has it been asked for?"""
        return kind in self._parts

    def of(self, kind: type[Part]) -> Part:
        """The instance of `kind`, made at its first use."""
        if kind not in self._parts:
            self._parts[kind] = kind()
        part: Part = self._parts[kind]
        return part


class FrameMemory(Parts):
    """What a code object remembers from one compilation to the next, as long as Dynamo has code for it.

    beginnings: called at the beginning of each attempt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.beginnings: set[Callable[[Compilation], None]] = set()


class Attempts(Parts):
    """What the attempts of one compilation hand on: Dynamo traces a frame anew until one succeeds.

    current: the attempt that is being made; begun: has there been one?  made: the one whose code is being generated.
    callers: the ledgers of the frames that run, and have led to this one because they break.
    failed: did something of ours fail in one?  Then no question is answered any more, and the ledger is not asked.
    ends: called at the end of each further attempt.
    """

    def __init__(self) -> None:
        super().__init__()
        self.current: Compilation | None = None
        self.made: Compilation | None = None
        self.begun = False
        self.callers: list[Ledger] = []
        self.failed = False
        self.ends: set[End] = set()


def _trace_anew(reason: str) -> NoReturn:
    """Let Dynamo forget what it has traced of the frame, and start again."""
    from torch._dynamo.exc import UnspecializeRestartAnalysis  # the one that also forgets where the trace has been

    raise UnspecializeRestartAnalysis(restart_reason=f"graphmend_hook: {reason}")


def is_order(error: object) -> bool:
    """Does it tell Dynamo to start the trace again?"""
    from torch._dynamo.exc import RestartAnalysis

    return isinstance(error, RestartAnalysis)


def is_graph_break(error: object) -> bool:
    """Does it tell Dynamo to start the trace again, and to end the graph where it has come to?"""
    from torch._dynamo.exc import SpeculationRestartAnalysis

    return isinstance(error, SpeculationRestartAnalysis)


def is_break_or_failure(error: BaseException | None) -> bool:
    """Has the attempt that ends with it come to a graph break or an error, and not to an order to start again?"""
    return is_graph_break(error) or (isinstance(error, Exception) and not is_order(error))


class Compilation(Parts):
    """What one attempt to compile a frame knows.

    output: Dynamo's `OutputGraph` of the attempt; code: that of the frame; one_graph: is it under ``fullgraph=True``?
    undo: is closed at the end of the attempt, whatever becomes of it.
    """

    def __init__(self, output: Any, attempts: Attempts, memory: FrameMemory) -> None:
        super().__init__()
        self.output, self.attempts, self.memory = output, attempts, memory
        self.code: CodeType = output.root_tx.f_code
        self._skipped: Exception | None = None
        self.one_graph: bool = output.root_tx.one_graph
        self.undo = contextlib.ExitStack()
        self._graph_end = GraphEnd()
        self._ends: list[End] = []
        self._looks: list[Callable[[Compilation], None]] = []
        self._outer = sys.exc_info()[1]  # no exception of this attempt
        output.register_finalizer_fns.append(self._reach_graph_end)
        # Dynamo cleans up in a ``finally``; what is raised there takes the place of the exception that is on its way.
        output.cleanup = self._end

    @property
    def is_saved(self) -> bool:
        """Is the compiled code kept for other processes, without what this one has put around it?"""
        return getattr(self.output, "package", None) is not None

    def allows(self, feature: Feature, site: Hashable = None) -> bool:
        """Is the bet on the feature still on, at the site?  Without a site, in the whole frame."""
        return self.dropped(feature, site) is None

    def dropped(self, feature: Feature, site: Hashable = None) -> Bet | None:
        """The bet on the feature that is off at the site, if one is: it knows why."""
        everywhere = feature.lifetime is Lifetime.EVERYWHERE
        ledgers = remembered(EveryFrame) if everywhere else [self._ledger(feature.lifetime)]
        if feature.lifetime is Lifetime.CALLS:
            ledgers += self.attempts.callers
        return next(filter(None, (ledger.dropped(feature, site) for ledger in ledgers)), None)

    def lost(self, feature: Feature) -> list[Bet]:
        """The bets on the feature that are off in this compilation, or in its code."""
        return self._ledger(feature.lifetime).lost(feature)

    def _ledger(self, lifetime: Lifetime) -> Ledger:
        """Where bets of that lifetime are written down, of this compilation or of its code."""
        if lifetime is Lifetime.COMPILATION:
            return self.attempts.of(Ledger)
        return self.memory.of(EveryFrame if lifetime is Lifetime.EVERYWHERE else Ledger)

    def without(self, *bets: Bet, reason: str) -> NoReturn:
        """Drop the bets, and trace the frame anew: the only retreat.  reason: why, for Dynamo's log.

        Raises UselessRetreatError, a defect, if none of the bets was on.
        """
        news = [self.drop(bet) for bet in bets]
        if not any(news):
            raise UselessRetreatError(reason)
        off = {bet.feature.what for bet in bets}
        log.debug("traced anew, where it was so that %s: %s", ", that ".join(sorted(off)), reason)
        _trace_anew(reason)

    def leave_to_eager(self, reason: str) -> NoReturn:
        """Let Dynamo not compile the frame, as it would not without us."""
        from torch._dynamo.exc import SkipFrame

        self._skipped = SkipFrame(f"graphmend_hook: {reason}")
        raise self._skipped

    def drop(self, bet: Bet) -> bool:
        """Let the bet be off from here on; False if it was."""
        is_new = self._ledger(bet.feature.lifetime).drop(bet)
        if bet.code:
            refusals.record(bet.code, bet.about, bet.place)
        return is_new

    def judge(self, verdict: Verdict, look: Look) -> None:
        """Call `look` with the graph when it is complete, where the verdict stands; it does not change the graph."""
        self._graph_end.ask(verdict, look)

    def change(self, change: Change, make: Look) -> None:
        """Call `make` with the graph after all verdicts, where the change stands; it changes the graph."""
        self._graph_end.ask(change, make)

    def wrap_compiler(self, wrapper: Wrapper, wrap: Wrap) -> None:
        """Give the graph to the compiler that `wrap` makes of the one before it."""
        self._graph_end.ask(wrapper, wrap)

    def before_end(self, look: Callable[[Compilation], None]) -> None:
        """Call `look` once when the trace is over, while Dynamo still knows what it has done; it gives no orders."""
        if look not in self._looks:
            self._looks.append(look)

    def at_end(self, action: End) -> None:
        """Call `action` once at the end of the attempt, whatever became of it, with the exception if there is one."""
        if action not in self._ends:
            self._ends.append(action)

    def _reach_graph_end(self, module: torch.fx.GraphModule) -> None:
        self._graph_end.run(module, self.output, self.call)

    def _end(self) -> None:
        error = sys.exc_info()[1]
        error = None if error is self._outer else error
        output = self.output
        seen = [self._see(look) for look in self._looks]
        with self.undo, contextlib.ExitStack() as stack:  # one that gives orders to Dynamo raises; all are called
            type(output).cleanup(output)
            output.mark_bytecode_tracing_stop()
            self.attempts.current, self.attempts.made = None, self if error is None else None
            for action in (*self._ends, _forget_own_guards, _forget_lost_users):  # the last comes first
                stack.callback(self.call, action, error)
            if not all(seen):
                stack.callback(self.give_up)

    def _see(self, look: Callable[[Compilation], None]) -> bool:
        try:
            look(self)
        except Exception as error:
            defects.report("the end of a trace", error)
            return False
        return True

    def call(self, action: Callable[[Compilation, Any], None], about: object) -> bool:
        """Call `action` with this attempt and `about`; if it fails, the frame is traced as without us.

        False where it was not called, or has failed and the trace goes on, as under ``fullgraph=True``.
        """
        try:
            if not (isinstance(about, BaseException) and defects.is_fatal(about)):
                action(self, about)
                return True
        except Exception as error:
            if is_order(error) or error is self._skipped:
                raise
            defects.report("a look at a trace", error)
            self.give_up()
        return False

    def before(self, answer: Callable[..., Any], look: Callable[..., None]) -> Callable[..., Any]:
        """What does as `answer`, a function of Dynamo's, but first calls `look` with this attempt and the arguments."""

        @functools.wraps(answer)
        def look_and_answer(*given: Any, **named: Any) -> Any:
            self.call(lambda compilation, _: look(compilation, *given, **named), None)
            return answer(*given, **named)

        return look_and_answer

    def give_up(self) -> None:
        """Trace the frame as without us, now that something of ours has failed; under ``fullgraph=True`` go on."""
        if not (self.one_graph or self.attempts.failed):
            self.attempts.failed = True
            _trace_anew("it failed")


def _forget_lost_users(compilation: Compilation, error: BaseException | None) -> None:
    """Make the graphs of a failed attempt fit to be cleared, as Dynamo is about to do.

    It fails in that, and the frame with it, where a node has a user that is not in the graph (a captured size that
    `torch.vmap` asks for).
    """
    for tracer in compilation.output.tracers if error is not None else ():
        known = {*tracer.graph.nodes}
        for node in known:
            node.users = {user: None for user in node.users if user in known}


def _forget_own_guards(compilation: Compilation, _error: BaseException | None) -> None:
    forget_own_guards(compilation.output)


_attempts: WeakKeyDictionary[CompileContext, Attempts] = WeakKeyDictionary()
_memories: Any = WeakIdKeyDictionary()  # by code object, which would be equal to others of the same text


def attempts_now() -> Attempts:
    """Those of the compilation that is going on, whose trace may be over; raises NotTracingError outside of one."""
    context = CompileContext.try_get()
    if context is None:
        raise NotTracingError
    return _attempts.setdefault(context, Attempts())


def compilation_of(output: Any) -> Compilation:
    """The attempt that traces into `output`; raises NotTracingError where it is over."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    if output.root_tx is None:
        raise NotTracingError
    attempts = attempts_now()
    if attempts.current is None or attempts.current.output is not output:
        code = output.root_tx.f_code
        if not attempts.begun and not _debug_get_cache_entry_list(code):
            _memories[code] = FrameMemory()  # the first time, or after `torch._dynamo.reset`
        if not attempts.begun:
            attempts.callers = _ledgers_of_callers()
        attempts.begun = True
        attempts.current = Compilation(output, attempts, memory_of(code))
        for action in attempts.ends:
            attempts.current.at_end(action)
        for begin in attempts.current.memory.beginnings:
            begin(attempts.current)
    return attempts.current


def begin_as_remembered(output: Any) -> None:
    """Make the beginnings known that the code remembers, which traces into `output`, before anything is asked."""
    memory = None if output.root_tx is None else _memories.get(output.root_tx.f_code)
    if memory is not None and memory.beginnings:
        with contextlib.suppress(NotTracingError):
            compilation_of(output)


def _ledgers_of_callers() -> list[Ledger]:
    """Those of the frames that run.  One that breaks has code of Dynamo's, with the name and place of the program's."""
    ledgers, found, frame = {_place(code): memory.of(Ledger) for code, memory in _known(Ledger)}, [], sys._getframe()
    while ledgers and frame.f_back is not None:
        frame = frame.f_back
        if (ledger := ledgers.pop(_place(frame.f_code), None)) is not None:
            found.append(ledger)
    return found


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def remembered(kind: type[Part]) -> list[Part]:
    """What all frames remember of that kind to which Dynamo has come since the last `torch._dynamo.reset`."""
    return [memory.of(kind) for _, memory in _known(kind)]


def _known(kind: type[Part]) -> list[tuple[CodeType, FrameMemory]]:
    from torch._dynamo.convert_frame import input_codes

    return [(code, memory) for code, memory in list(_memories.items()) if kind in memory and code in input_codes]


def memory_of(code: CodeType) -> FrameMemory:
    """What is remembered of the code object."""
    memory: FrameMemory = _memories.setdefault(code, FrameMemory())
    return memory
