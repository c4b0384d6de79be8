"""The ledger of bets: what the attempts of a compilation rest on, and what further ones have to do without.

Each mended statement is a bet that the attempt which traces it succeeds.  Where it does not, one bet is dropped, or a
few are, and Dynamo traces the frame anew (`Compilation.without`).  So each attempt does with less than the last, and a
frame that cannot do without its breaks is compiled as it is without the hook.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto

from .refusals import Place


class Lifetime(Enum):
    """For how long a bet is dropped.  `torch._dynamo.reset` ends all of them."""

    COMPILATION = auto()  # while Dynamo traces the frame, until an attempt succeeds
    CODE = auto()  # as long as Dynamo has compiled code for the frame's code object
    CALLS = auto()  # the same, and in the frames that are compiled while one of that code runs, since it breaks
    EVERYWHERE = auto()  # the same, in each frame that comes to the site


@dataclass(frozen=True, eq=False)
class Feature:
    """What attempts may do without, declared beside the logic that it switches.

    what: is the case while the bet is on; lifetime: for how long one is dropped.
    """

    what: str
    lifetime: Lifetime = Lifetime.COMPILATION

    def at(self, site: Hashable = None, code: str = "", about: str = "", place: Place | None = None) -> Bet:
        """The bet on it at the site; without a site, in the whole frame."""
        return Bet(self, site, code, about, place)


@dataclass(frozen=True)
class Bet:
    """What is dropped where an attempt does not succeed.

    site: a line of the program, or what else the feature counts by; None for the whole frame.
    code: that of the report, "" where the next attempt says it; about: the operation that it is about, or "";
    place: where that is, if it is not the statement that is traced.
    """

    feature: Feature
    site: Hashable
    code: str = ""
    about: str = ""
    place: Place | None = None


class Ledger:
    """The bets that are off, in the order in which they were dropped."""

    def __init__(self) -> None:
        self._off: dict[tuple[Feature, Hashable], Bet] = {}

    def drop(self, bet: Bet) -> bool:
        """Let the bet be off; False if it was."""
        return self._off.setdefault((bet.feature, bet.site), bet) is bet

    def dropped(self, feature: Feature, site: Hashable) -> Bet | None:
        """The bet that is off on the feature at the site, or in the whole frame; None if none is."""
        return self._off.get((feature, site)) or self._off.get((feature, None))

    def lost(self, feature: Feature) -> list[Bet]:
        """The bets on the feature that are off."""
        return [bet for (known, _), bet in self._off.items() if known is feature]


class EveryFrame(Ledger):
    """Those that are off in all frames."""


class UselessRetreatError(Exception):
    """What is to be dropped was dropped before: the next attempt would end as this one."""


MENDING = Feature("statements are mended")
STATEMENT = Feature("the statement at a line is mended", Lifetime.CODE)
STEP = Feature("the steps of a loop that data ends at a line are mended", Lifetime.CALLS)
INLINED = Feature("the statement at a line of a function that others call is mended", Lifetime.EVERYWHERE)
