"""Where statements were left as they were written while Dynamo traced, and with which code."""

from __future__ import annotations

import logging

from ...diagnostics import CODES, code

log = logging.getLogger("graphmend_hook.trace")
# The codes of this adapter.  Rules declare their own, and `rules.codes` has them all.
OWN_ERROR = code("GM100-T01", "an error of graphmend_hook's own while it was traced; please report it")
COMPILED_AGAIN = code(
    "GM100-T02",
    "the frame would be compiled a third time because of a guard that it has only since it does not break here: "
    "it breaks again",
)
ENDED_BY_DYNAMO = code(
    "GM100-T03",
    "Dynamo ends the graph at the statement, or leaves the frame to eager there, for a reason of its own",
)
NUMBERS_GIVEN_UP = code(
    "GM104-T09",
    "numbers that were captured on the way here were given up, and are read as they were written",
    "Look at the line that the reason names; `# graphmend: off[value]` there saves the attempts.",
    "numbers that were captured on the way here were given up, and are read as they were written; in parentheses why, "
    "and after how many attempts",
)

told: frozenset[str] = frozenset()  # the codes of what is no refusal, once rewritten code can be traced
Place = tuple[str, int, str]  # file, line, function
NOWHERE: Place = ("?", 0, "?")  # where no code of the program is being traced
Seen = tuple[str, str, int, str]  # a code, and its place
seen: dict[Seen, str] = {}  # in the order of tracing, with the operation that each is about, or ""


decided: set[tuple[str, int]] = set()  # the lines whose tests a guard decides, though they are traced as written


def add(code: str, place: Place, operation: str = "") -> bool:
    """Note that what stands at the place was left there; False if that was known."""
    found = (code, *place)
    if found in seen:
        return False
    seen[found] = operation
    return True


def left() -> dict[Seen, str]:
    """What is not in the graph in another way, or was not in each."""
    return {known: operation for known, operation in seen.items() if known[1:3] not in decided}


def is_left(place: Place) -> bool:
    """Is it known why what stands at the line was left there?"""
    return any(known[1:3] == place[:2] and known[0] not in told for known in left())


def withdraw(place: Place) -> None:
    """What stands at the place is mended after all, in another way."""
    for found in [found for found in seen if found[1:] == place]:
        del seen[found]


def about(known: Seen) -> str:
    """What to add to the sentence of its code: the operation in parentheses, or nothing."""
    return f" ({seen[known]})" if seen[known] else ""


def record(code: str, operation: str = "", place: Place | None = None) -> None:
    """Remember that the statement that is being traced stays as it was written, because of an operation perhaps.

    place: where that is, if it is not the statement that is being traced.
    """
    if place is None:
        from torch._guards import TracingContext

        from ..door.own_code import OWN_FILES

        frames = [frame for frame in TracingContext.extract_stack() if frame.filename not in OWN_FILES]
        place = (frames[-1].filename, frames[-1].lineno or 0, frames[-1].name) if frames else NOWHERE
    if add(code, place, operation):
        why = CODES[code].sentence + about((code, *place))
        log.debug("%s: left in place at %s:%s in %s: %s", code, *place, why)
