"""What an attempt has captured, and what further ones may: the first few numbers, all that they can be, or less."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NoReturn

from ..attempt.attempt import MENDING, Bet, Feature, Ledger
from ..attempt.compilation import Compilation
from ..attempt.refusals import NUMBERS_GIVEN_UP, Place
from ..door.tracer import SourceLine
from . import assumptions, not_captured

# Each by the number of the capture, where some of them are off, and not all.
CAPTURE = Feature("numbers that the data decides are captured")
NEGATIVE = Feature("a captured number may be below 0")
SMALL = Feature("a captured number may be 0 or 1")
DISTINCT = Feature("how many distinct elements an input has is captured")  # else its contents say it


class Denied(Enum):
    """Why nothing may be captured in a frame, whatever the number is."""

    BY_TORCH = auto()  # what this torch, or this way to compile, generates cannot be relied on
    BY_FAILURE = auto()  # a graph took something for granted that did not hold in another call
    BY_WORTH = auto()  # what such a number decides could not be traced before, or is not likely to be


@dataclass
class Captured:
    """What an attempt has captured.

    symbols: each with the number of the capture that it came with; before: those there were before the last began;
    switched: Dynamo's settings that are on only for the one that goes on.
    denied: why the last capture was not allowed, where captures are not; places: of the captures, in order;
    given: settings of the attempt's symbols that allow them; bounds: of symbols, as they were made.
    drawn: the least and the greatest of the numbers that are captured, where they are drawn at random.
    needed: what else has to hold of them, or eager fails, as expressions of sympy.
    distinct: is one the number of distinct elements of a tensor that is small enough to know its contents?
    """

    symbols: dict[str, int] = field(default_factory=dict)
    before: set[Any] = field(default_factory=set)
    switched: set[str] = field(default_factory=set)
    denied: Denied | None = None
    places: list[Place] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    drawn: tuple[float, float] | None = None
    needed: list[Any] = field(default_factory=list)
    distinct: bool = False

    @property
    def count(self) -> int:
        """How many operations have captured something so far?"""
        return len({*self.symbols.values()})


def is_uncaptured(compilation: Compilation) -> bool:
    """Is every number in this compilation to be read as it was written?"""
    return not (compilation.allows(MENDING) and compilation.allows(CAPTURE))


def is_limited(compilation: Compilation) -> bool:
    """Are some captures off?  Then nothing is taken for granted of the others."""
    return bool(compilation.attempts.of(Ledger).lost(CAPTURE))


def all_but(
    count: int, compilation: Compilation, reason: str, place: Place | None = None, lines: Iterable[SourceLine] = ()
) -> list[Bet]:
    """What to drop for all reads of numbers but the first `count` to be traced as they were written.

    place: where the program was, if that is known; else the first capture is told.
    lines: those of captures that no frame which is traced here need try again.
    """
    place = place or next(iter(compilation.of(Captured).places), None)
    about = f"{reason}; attempts given up: {len(compilation.attempts.of(Ledger).lost(CAPTURE)) + 1}"
    capture = CAPTURE.at(count or None, NUMBERS_GIVEN_UP, about, place)
    return [capture, assumptions.EXAMPLES.at(), *not_captured.undecided(compilation, lines)]


def read_as_written(compilation: Compilation, reason: str) -> NoReturn:
    """Trace the frame anew, with all reads of numbers as they were written."""
    compilation.without(*all_but(0, compilation, reason), reason=reason)


def may_assume(compilation: Compilation) -> bool:
    """May anything be taken for granted of numbers?  Not where some are not captured, or those of the call decide."""
    return not (is_limited(compilation) or assumptions.decides_by_call(compilation))


def is_assumed(compilation: Compilation, feature: Feature, number: int) -> bool:
    """Is it taken for granted of the numbers of that capture that they are not what the feature allows?"""
    return may_assume(compilation) and not compilation.allows(feature, number)


def supposes(compilation: Compilation) -> bool:
    """Does the attempt rest on what nobody knows of a number?"""
    off = compilation.attempts.of(Ledger)
    is_assumed = may_assume(compilation) and bool(off.lost(NEGATIVE) or off.lost(SMALL))
    return is_assumed or assumptions.supposes(compilation)
