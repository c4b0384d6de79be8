"""What to give up after an attempt that has failed for a reason which no rule has named: the least comes first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..door.tracer import place_of
from ..epilogue.rerun import RerunMemory
from ..graph_end.stopped_gradients import without_gates
from ..numbers import assumptions, captured, not_captured
from ..numbers.captured import DISTINCT, NEGATIVE, SMALL, Captured
from .as_written import mending
from .attempt import Bet, Ledger
from .compilation import Compilation
from .refusals import Place

_LARGE = 500  # operations of a graph that takes seconds to trace; once one has failed, it is not tried in other ways
_UNBACKED = re.compile(r"\bu\d+\b")  # how PyTorch spells a number that the data decides


@dataclass(frozen=True)
class Failure:
    """Why an attempt has failed, in our words and in those of the error.

    restarts: Dynamo traces the frame anew by itself, with a graph break; gives_up: it leaves the frame alone.
    """

    compilation: Compilation
    reason: str
    error: BaseException
    text: str
    restarts: bool = False
    gives_up: bool = False

    @property
    def expression(self) -> str:
        """What no number is known for, as PyTorch prints it; "" where that is not why."""
        found = assumptions.UNDECIDED.search(self.text)
        return found[1] if found else ""

    @property
    def named(self) -> list[int]:
        """The captures that the numbers of the expression come from."""
        symbols = self.compilation.of(Captured).symbols
        return [symbols[name] for name in _UNBACKED.findall(self.expression) if name in symbols]

    @property
    def is_of_backend(self) -> bool:
        """Has the backend failed, and not the trace?"""
        from torch._dynamo.exc import BackendCompilerFailed

        return isinstance(self.error, BackendCompilerFailed)

    @property
    def is_large(self) -> bool:
        """Does each further attempt cost seconds, where the frame may break instead?"""
        return not self.compilation.one_graph and len(self.compilation.output.graph.nodes) > _LARGE

    @property
    def has_graph_failed(self) -> bool:
        """Has a graph of the frame failed in a call?"""
        return self.compilation.memory.of(RerunMemory).failures > 0

    @property
    def may_assume(self) -> bool:
        """May more be taken for granted of all numbers?"""
        return captured.may_assume(self.compilation) and not self.has_graph_failed


def _let_fail(failure: Failure) -> list[Bet]:
    """With the numbers of the call the program itself fails."""
    is_the_programs = not (failure.expression or failure.is_of_backend)
    decides = assumptions.decides_by_call(failure.compilation)
    return [*assumptions.LETTING_FAIL] if is_the_programs and decides else []


def _nothing_in_what_is_large(failure: Failure) -> list[Bet]:
    return _all_but(0, failure) if failure.has_graph_failed and failure.is_large else []


def _nothing_for_the_backend(failure: Failure) -> list[Bet]:
    """It does not speak of numbers, or on a large graph not of a decision."""
    speaks_of_numbers = failure.expression or (_UNBACKED.search(failure.text) and not failure.is_large)
    is_helpless = failure.is_of_backend and not failure.compilation.one_graph and not speaks_of_numbers
    return _all_but(0, failure, [*failure.compilation.of(Captured).places]) if is_helpless else []


def _not_negative(failure: Failure) -> list[Bet]:
    is_open = failure.may_assume and failure.compilation.allows(NEGATIVE)
    helps = bool(failure.expression) and not_captured.is_decided_from(0, failure.expression)
    return [NEGATIVE.at()] if is_open and helps else []


def _above_one(failure: Failure) -> list[Bet]:
    """As Dynamo takes for granted of sizes: that is what most backends fail on.  First, those of the expression."""
    compilation, named = failure.compilation, failure.named
    if failure.expression:
        helps = not_captured.is_decided_from(2, failure.expression) is not False
    else:
        helps = not failure.gives_up
    left = [number for number in named if compilation.allows(SMALL, number)]
    if not (helps and failure.may_assume and compilation.allows(SMALL)) or (named and not left):
        return []
    is_first = not compilation.attempts.of(Ledger).lost(SMALL)
    return [*map(SMALL.at, named)] if named and is_first else [SMALL.at()]


def _by_contents(failure: Failure) -> list[Bet]:
    """A list as long as the data says there are distinct elements, for one."""
    is_open = failure.compilation.allows(DISTINCT) and failure.compilation.of(Captured).distinct
    return [DISTINCT.at()] if is_open and failure.expression else []


def _by_example(failure: Failure) -> list[Bet]:
    """The backend is given none."""
    return assumptions.deciding(failure.compilation) if failure.expression and not failure.is_of_backend else []


def _without_example(failure: Failure) -> list[Bet]:
    return [assumptions.EXAMPLES.at()] if assumptions.supposes(failure.compilation) else []


def _fewer_captures(failure: Failure) -> list[Bet]:
    """The graph ends at the last number that the expression names; then, all numbers are read as they were written."""
    if failure.compilation.one_graph:
        return []
    last, places = max(failure.named, default=0), [*failure.compilation.of(Captured).places]
    undecidable = places[last : last + 1] if failure.expression else places if failure.is_of_backend else []
    return _all_but(0 if captured.is_limited(failure.compilation) else last, failure, undecidable)


def _without_gates(failure: Failure) -> list[Bet]:
    return without_gates(failure.compilation, failure.text) if failure.is_of_backend else []


def _as_written(failure: Failure) -> list[Bet]:
    bet = None if failure.restarts else mending(failure.compilation)
    return [] if bet is None else [bet]


def _all_but(count: int, failure: Failure, undecided: list[Place] | None = None) -> list[Bet]:
    lines = [place[:2] for place in undecided or ()]
    return captured.all_but(count, failure.compilation, failure.reason, place_of(failure.error), lines)


# In this order, where numbers have been captured; then, the frame is traced as it was written.
OF_NUMBERS: tuple[Callable[[Failure], list[Bet]], ...] = (
    _let_fail,
    _nothing_in_what_is_large,
    _nothing_for_the_backend,
    _not_negative,
    _above_one,
    _by_contents,
    _by_example,
    _without_example,
    _fewer_captures,
)


def after(failure: Failure) -> list[Bet]:
    """What to drop after the failure; [] where nothing helps, and it stands."""
    if failure.restarts and not failure.expression:
        return []
    has_captured = bool(failure.compilation.of(Captured).given)
    for retreat in (_without_gates, *(OF_NUMBERS if has_captured else ()), _as_written):
        if bets := retreat(failure):
            return bets
    return []
